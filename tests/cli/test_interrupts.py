"""Ctrl-C at chosen moments: a process presses it itself, at an event that Python tells hooks of."""

import subprocess
import sys

PRESS = "import atexit, os, signal, sys\npress = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
MAIN = "\nfrom evolve.cli import main\nmain()\n"
INTERRUPTED = ["evolve: interrupted; what was recorded is kept"]

AT_EXIT = "atexit.register(press)"
WHILE_ORJSON_STARTS = """
def hook(event, arguments):
    if event == "import" and arguments[0] == "orjson.orjson":
        for name in [name for name in sys.modules if name.startswith("json")]:
            del sys.modules[name]
    elif event == "import" and arguments[0] == "json.decoder":
        press()
sys.addaudithook(hook)
"""
AT_ANSWERS = """
answers = 0
def hook(frame, event, argument):
    global answers
    if frame.f_code.co_name == "put" and frame.f_code.co_filename.endswith("models/cache.py"):
        answers += 1
        if answers in (2, 12):
            press()
def begin(event, arguments):
    if event == "import" and arguments[0] == "evolve.loop.observe":
        sys.settrace(hook)
sys.addaudithook(begin)
"""


def ended(when: str, *words: object) -> tuple[int, list[str]]:
    """Run a command in which Ctrl-C is pressed at a moment; return its exit code and what it said on standard error."""
    command = [sys.executable, "-W", "always:coroutine", "-c", PRESS + when + MAIN, *(str(word) for word in words)]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return process.returncode, process.stderr.splitlines()


def test_ctrl_c_while_a_native_module_starts_is_no_crash(workspace):
    """It ends in one line, where an exception in orjson's start is a segmentation fault."""
    assert ended(WHILE_ORJSON_STARTS, "plan", "-C", workspace) == (130, INTERRUPTED)


def test_ctrl_c_after_the_last_word_changes_nothing():
    """A command that has ended ends with its own exit code, and nothing is said."""
    assert ended(AT_EXIT, "--version") == (0, [])


def test_a_second_ctrl_c_ends_a_run_in_one_line(workspace):
    """What was under way is cancelled without a traceback or a warning, the ledger opens, and the run goes on."""
    options = ["-C", workspace, "--config", workspace / "my.toml", "--iterations", "1"]
    tasks = ("--set", "environments.household.train=8")
    code, said = ended(AT_ANSWERS, "run", *options, *tasks)
    assert code == 130
    assert [line.partition(":")[0] for line in said] == ["held-out tasks of household", "stopping", "evolve"], said
    assert ended("", "run", "--resume", "-C", workspace)[0] == 0
