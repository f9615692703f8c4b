"""The command line: reads arguments, calls the parts below, prints, and turns errors into exit codes.

Commands stand in `commands/`, one a file, and hold no logic. Importing this package is quick: what a command
needs is imported when it runs.
"""

from __future__ import annotations

OBJECTS_OF_A_START = 50_000
"""What a command loads lives as long as it does: to look through it for garbage at each 700 objects, as Python 3.11
does, is a tenth of its start."""


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    import gc
    import sys

    if gc.get_threshold()[0]:
        gc.set_threshold(OBJECTS_OF_A_START)
    try:
        from evolve.cli.interrupts import ignore_interrupts, take_interrupts

        take_interrupts()
        from evolve.cli.exits import run_command

        code = run_command(sys.argv[1:])
        ignore_interrupts()
    except KeyboardInterrupt:  # before anything could begin
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("evolve: interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)
