"""Stands for `evolve` inside a sandbox: `evolve harness check PATH` works there, and nothing else does.

    python check_program.py FOLDERS harness check PATH

FOLDERS are those that modules are found in, with os.pathsep between them.
"""

import os
import sys
from pathlib import Path

_USAGE = "in here only `evolve harness check PATH` works"
_WRONG = 2


def main(folders: str, arguments: list[str]) -> int:
    """Print what `evolve harness check` prints and return its exit code."""
    if arguments[:2] != ["harness", "check"] or len(arguments) != 3:
        print(_USAGE, file=sys.stderr)
        return _WRONG
    sys.path.extend(folders.split(os.pathsep))
    from evolve.harness.check import check_folder

    findings = check_folder(Path(arguments[2]))
    number = f"{len(findings)} finding" + ("" if len(findings) == 1 else "s")
    print("\n".join([*findings, number]) if findings else f"{arguments[2]}: the harness is fine")
    return _WRONG if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
