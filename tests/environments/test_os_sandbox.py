"""OS interaction in real sandboxes: that nothing gets out, the benchmark's strings, and real tasks played."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

import pytest
from os_machine import bash, call, environment, opened, problem, rootfs_here

from evolve.environments.os_interaction.benchmark import DEV, TRAIN
from evolve.environments.os_interaction.gold import KNOWN_MISSES, play
from evolve.environments.os_interaction.problems import Script
from evolve.environments.os_interaction.rootfs import Rootfs
from evolve.environments.os_interaction.sandbox import Sandbox
from evolve.environments.os_interaction.session import OsSession
from evolve.errors import EnvironmentBroken, UserError
from evolve.records import ErrorKind, Split

Folder = Callable[[str], Path]
HOST_FOLDERS = ("/", "/bin", "/etc", "/home", "/opt", "/root", "/tmp", "/usr", "/usr/bin", "/var", "/var/log")
HOST_FILES = ("/etc/passwd", "/etc/shadow", "/etc/group", "/etc/hosts", "/etc/hostname", "/root/.bashrc", "/bin/env")


@pytest.fixture(scope="session")
def rootfs() -> Rootfs:
    return rootfs_here()


@pytest.fixture
def session(rootfs: Rootfs) -> Iterator[OsSession]:
    with opened(rootfs) as session:
        yield session


def host_state(rootfs: Rootfs) -> dict[str, object]:
    """Return what a script that got out would have changed: files it writes to, the hostname, what is mounted."""
    files = {path: (sha256(p.read_bytes()).hexdigest(), p.stat().st_ctime_ns) for path, p in existing(HOST_FILES)}
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if str(rootfs.folder) in line]
    return {**files, "name": os.uname().nodename, "mounts": mounts}


def existing(paths: tuple[str, ...]) -> list[tuple[str, Path]]:
    return [(path, Path(path)) for path in paths if Path(path).exists()]


def named(token: str) -> list[str]:
    """Return what on the host carries a token: paths in the usual folders and command lines of processes."""
    paths = [str(path) for folder in HOST_FOLDERS for path in Path(folder).iterdir() if token in path.name]
    return paths + processes(token)


def processes(token: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes() if entry.name.isdecimal() else b""
        except OSError:
            continue
        if token.encode() in words:
            found.append(f"{entry.name}: {words[:80]!r}")
    return found


def newer_than(stamp: float, folder: Path) -> list[str]:
    """Return the paths below a folder whose content or attributes changed after a time."""
    walk = ((where, names) for where, folders, files in os.walk(folder) for names in [["", *files]])
    paths = [os.path.join(where, name) for where, names in walk for name in names]
    return [path for path in paths if os.lstat(path).st_ctime > stamp]


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


VANDAL = """
for place in {folders}; do mkdir -p $place; echo {token} > $place/{token}; done
for file in {files}; do echo {token} >> $file; done
useradd -m {token}; chmod 777 /etc/shadow; rm -rf /usr/share/* /etc/hostname; hostname {token}
(exec -a {token}-daemon sleep 999) & setsid sh -c 'exec sleep 999.{digits}' &
mount -t tmpfs none /mnt; kill -KILL 1; kill -STOP 1; kill -TERM 1; kill -INT 1
"""


def test_nothing_outside_changes(rootfs: Rootfs) -> None:
    """A script that writes, deletes, adds a user, renames the host and leaves daemons changes its sandbox only."""
    token = f"evolve{secrets.token_hex(6)}"
    script = VANDAL.format(
        token=token, digits=int(token[6:], 16), folders=" ".join(HOST_FOLDERS), files=" ".join(HOST_FILES)
    )
    before, stamp = host_state(rootfs), time.time() - 0.01
    with opened(rootfs, problem(init=(Script("bash", script),), start=Script("bash", script))) as session:
        bash(session, script)
        seen = bash(session, f"cat /root/{token}; grep -c {token} /etc/passwd; test -e /etc/hostname || echo gone").text
        assert seen.startswith(f"The output of the OS:\n\n{token}\n")
        assert seen.endswith("gone\n")
        assert host_state(rootfs) == before
    assert host_state(rootfs) == before
    assert named(token) == []
    assert newer_than(stamp, rootfs.folder / "root") == []
    assert list((rootfs.folder / "mount").iterdir()) == []


def test_nothing_outside_can_be_reached(session: OsSession) -> None:
    """No network but loopback, no writable kernel setting, no right to mount, no host process, no way at process 1."""
    seen = bash(
        session,
        "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '\n"
        "find /proc -maxdepth 6 -path '/proc/[0-9]*' -prune -o ! -type l -perm /222 -writable -print 2>/dev/null"
        " | while read -r each; do [ -f $each ] && echo $each; done\n"
        "mount -t tmpfs none /mnt 2>/dev/null || echo no mount; mknod /tmp/d b 1 1 2>/dev/null || echo no device\n"
        "cat /proc/1/fd/0 2>/dev/null || echo no descriptor\n"
        "ls /proc | grep -c '^[0-9]'; grep NoNewPrivs /proc/self/status",
    ).text
    lines = seen.removeprefix("The output of the OS:\n\n").splitlines()
    assert lines[:4] == ["lo", "no mount", "no device", "no descriptor"]
    assert int(lines[4]) < 8
    assert lines[5].split() == ["NoNewPrivs:", "1"]


def test_a_killed_host_process_leaves_nothing(rootfs: Rootfs) -> None:
    """After kill -9 of the process that holds a sandbox, all of the sandbox ends, whatever ran in it."""
    seconds = f"98765.{secrets.randbelow(10**9):09d}"
    code = (
        "import sys; from pathlib import Path\n"
        "from evolve.environments.os_interaction.rootfs import read_rootfs\n"
        "from evolve.environments.os_interaction.sandbox import Sandbox\n"
        f"box = Sandbox(read_rootfs(Path({str(rootfs.folder)!r})))\n"
        f"box.script('setsid nohup sleep {seconds} & trap \"\" TERM HUP INT; kill -STOP 1', 30)\n"
        f"box.script('sleep {seconds}', 60)\n"
    )
    host = subprocess.Popen([sys.executable, "-c", code])
    try:
        assert wait_until(lambda: len([p for p in processes(seconds) if "sleep" in p and "import" not in p]) >= 2)
    finally:
        host.send_signal(signal.SIGKILL)
        host.wait()
    assert wait_until(lambda: processes(seconds) == [])
    assert list((rootfs.folder / "mount").iterdir()) == []


def test_a_sandbox_outlives_the_thread_that_opened_it(rootfs: Rootfs) -> None:
    """Sessions are opened in threads that end; their sandboxes stay until they are closed."""
    with ThreadPoolExecutor(1) as pool:
        box = pool.submit(Sandbox, rootfs).result()
    try:
        assert box.script("echo here", 10).output == b"here\n"
    finally:
        box.close()


def test_a_root_file_system_with_another_marker_runs_nothing(rootfs: Rootfs) -> None:
    """The supervisor checks the marker first; where it is another one, nothing is run and the sandbox is broken."""
    foreign = Rootfs(rootfs.folder, marker="0" * 32, digest=rootfs.digest)
    with pytest.raises(EnvironmentBroken, match="the sandbox did not start"):
        Sandbox(foreign)


def test_the_supervisor_runs_nothing_outside_a_sandbox(rootfs: Rootfs, tmp_path: Path) -> None:
    """Started on the host, even with the right marker, the supervisor ends before it reads a command."""
    source = Path(__file__).parents[2] / "evolve/environments/os_interaction/supervisor.py"
    code = f"{source.read_text('utf-8')}\nmain({rootfs.marker!r})\n"
    request = f'{{"mark": "m", "timeout_s": 5, "argv": ["touch", "{tmp_path}/ran"]}}\n'
    done = subprocess.run([sys.executable, "-c", code], input=request.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (3, b"", [])


def test_a_closed_sandbox_is_broken_and_closes_again(rootfs: Rootfs) -> None:
    """After close nothing can be run, and a second close does nothing."""
    box = Sandbox(rootfs)
    box.close()
    box.close()
    with pytest.raises(EnvironmentBroken, match="is closed"):
        box.script("true", 1)


def test_a_folder_that_holds_no_file_system_breaks_with_the_launchers_words(tmp_path: Path, rootfs: Rootfs) -> None:
    """What the launcher said is in the error."""
    with pytest.raises(EnvironmentBroken, match=r"the sandbox .*: sh: .*cd: can't cd to"):
        Sandbox(Rootfs(tmp_path / "none", rootfs.marker, rootfs.digest))


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ("echo hi", "The output of the OS:\n\nhi\n"),
        ("true", "The output of the OS is empty."),
        ("", "The output of the OS is empty."),
        ("foo", "The output of the OS:\n\nbash: line 1: foo: command not found\n"),
        ("printf '\\xff'", "The output of the OS:\n\nOS Environment output cannot be decoded as UTF-8"),
        ("printf 'a%.0s' {1..800}", "The output of the OS:\n\n" + "a" * 800),
        (
            "printf 'a%.0s' {1..801}",
            "The output of the OS:\n\n" + "a" * 780 + "\n[truncated because the output is too long]",
        ),
        ("cat; echo end", "The output of the OS:\n\nend\n"),
        ("printf '\\e[31mred\\e[0m\\a'", "The output of the OS:\n\nred"),
        ("echo it\\'s \"quoted\" '$HOME'; # done", "The output of the OS:\n\nit's quoted $HOME\n"),
    ],
)
def test_the_benchmarks_own_strings(session: OsSession, script: str, shown: str) -> None:
    """Output, no output, unreadable output, long output and bash's own errors come as upstream words them."""
    answer = bash(session, script)
    assert (answer.text, answer.error_kind, answer.done) == (shown, None, False)


def test_an_open_if_is_an_error_of_bash_and_not_a_hang(session: OsSession) -> None:
    """A script is read as a whole; the shell goes on."""
    assert "syntax error: unexpected end of file" in bash(session, "if true").text
    assert bash(session, "echo on").text.endswith("\n\non\n")


def test_mistakes_are_answered_in_the_benchmarks_words(session: OsSession) -> None:
    """No call, an unknown tool, wrong arguments: each has its string and its kind, and nothing is run."""
    assert session.say("It is 3.").text == "No executable tool calls found. Please call a tool instead"
    assert session.say("").error_kind is ErrorKind.MALFORMED_CALL
    for wrong, kind in [
        (call("execute", script="touch /ran"), ErrorKind.UNKNOWN_TOOL),
        (call("bash_action"), ErrorKind.INVALID_ARGS),
        (call("bash_action", code="touch /ran"), ErrorKind.INVALID_ARGS),
        (call("bash_action", script="touch /ran", more=1), ErrorKind.INVALID_ARGS),
        (call("answer_action", thought="x"), ErrorKind.INVALID_ARGS),
    ]:
        answer = session.step(wrong)
        assert (answer.text, answer.error_kind) == ("Invalid function call. Please call a tool instead", kind)
    assert session.step(call("bash_action", script=["touch /ran"])).error_kind is ErrorKind.INVALID_ARGS
    assert session.probe(call("bash_action", script="touch /ran")).error_kind is ErrorKind.REJECTED
    assert bash(session, "ls /ran").text.startswith("The output of the OS:\n\nls: cannot access '/ran'")


def test_the_shell_stays_from_script_to_script(session: OsSession) -> None:
    """Folder, variables and functions stay; lines count from 1 in each script; after `exit` the shell is fresh."""
    bash(session, "cd /tmp; x=3; f() { echo f; }")
    assert bash(session, "pwd\necho $x\nf\nbar").text == (
        "The output of the OS:\n\n/tmp\n3\nf\nbash: line 4: bar: command not found\n"
    )
    assert bash(session, "echo bye; exit 4").text == "The output of the OS:\n\nbye\n"
    assert bash(session, "pwd; echo [$x]").text == "The output of the OS:\n\n/root\n[]\n"


def test_time_runs_out_with_what_was_printed_and_a_fresh_shell(rootfs: Rootfs) -> None:
    """A late script is stopped with all that it started, says so after its output, and has the kind timeout."""
    with opened(rootfs, timeout_s=0.6) as session:
        answer = bash(session, "cd /tmp; echo first; sleep 77.5; echo never")
        assert answer.text == (
            "The output of the OS:\n\nfirst\n\n[stopped after 0.6 seconds; the next script gets a fresh shell]"
        )
        assert answer.error_kind is ErrorKind.TIMEOUT
        assert len(bash(session, "yes").text) < 1000
        assert bash(session, "pwd; ps -e | grep -c sleep").text == "The output of the OS:\n\n/root\n0\n"


def test_daemons_stay_and_do_not_hold_up_what_comes_after(rootfs: Rootfs) -> None:
    """What set-up and scripts leave in the background runs on; no command waits for its output to close."""
    start = Script("bash", "while :; do date >> /root/log; sleep 0.01; done &")
    with opened(rootfs, problem(init=(Script("bash", "sleep 50.25 &"),), start=start)) as session:
        bash(session, "sleep 50.75 & sleep 0.1")
        assert bash(session, "pgrep -c -f 'sleep 50' && test -s /root/log").text == "The output of the OS:\n\n2\n"


def test_set_up_draws_the_same_numbers_each_time(rootfs: Rootfs) -> None:
    """bash's RANDOM in set-up is seeded by the task: a task opened twice is the same, another task differs."""
    draw = Script("bash", "for i in 1 2 3; do echo $RANDOM; done > /root/numbers")

    def numbers(task_id: str) -> str:
        with opened(rootfs, problem(task_id=task_id, init=(draw,))) as session:
            return bash(session, "cat /root/numbers").text

    assert numbers("one") == numbers("one") != numbers("two")


def test_checks_come_when_scored_and_never_as_files(rootfs: Rootfs) -> None:
    """Before the commitment nothing in the sandbox holds a check; it is judged once, and the score stays."""
    check = Script("bash", "echo secret-7 > /dev/null; echo run >> /root/count; test $1 = 3 -a $2 = 9")
    task = problem(check=(None, check), example=Script("bash", "echo 9"))
    with opened(rootfs, task) as session:
        look = "grep -rlI secret-[7] /root /tmp /etc /var /home /run /dev/shm /proc/[0-9]*/cmdline 2>/dev/null | wc -l"
        assert bash(session, look).text == "The output of the OS:\n\n0\n"
        assert session.score().value == 0.0
        answered = session.step(call("answer_action", answer="3"))
        assert (answered.done, answered.error_kind) == (True, None)
        assert [session.score().value for _ in range(3)] == [1.0, 1.0, 1.0]
        assert session._sandbox.program(["wc", "-l", "/root/count"], 5).output.split()[0] == b"1"
        assert session.step(call("bash_action", script="touch /late")).error_kind is ErrorKind.NO_EFFECT
        assert session._sandbox.program(["ls", "/late"], 5).status != 0


def test_late_set_up_breaks_and_a_late_check_is_wrong(rootfs: Rootfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set-up that does not end is never scored; a check that does not end has failed."""
    monkeypatch.setattr("evolve.environments.os_interaction.session.OWN_S", 0.5)
    hanging = Script("bash", "sleep 33.25")
    with pytest.raises(EnvironmentBroken, match="its set-up took more than"), opened(rootfs, problem(init=(hanging,))):
        pass
    with opened(rootfs, problem(check=(Script("bash", "sleep 33.5"),))) as session:
        session.step(call("finish_action", thought="done"))
        assert session.score().value == 0.0


@pytest.mark.parametrize("answer", ["", "x\0y", "\ud800", "é" * 100_000, 3, None, {"a": 1}, "'; touch /x; '"])
def test_whatever_is_answered_is_judged(rootfs: Rootfs, answer: object) -> None:
    """Any JSON value as the answer, of any size, gets a score and raises nothing."""
    with opened(rootfs, problem(check=(Script("python", "import sys; sys.exit(sys.argv[1] == '7')"),))) as session:
        assert session.step(call("answer_action", answer=answer)).done
        assert session.score() == session.score()


def test_strange_scripts_are_answered(session: OsSession) -> None:
    """NUL, lone surrogates and a script larger than a pipe's buffer neither hang nor raise."""
    large = f"echo {'é' * 90_000} | wc -c"
    for script in ("echo a\0b", "echo \ud800", large, "\r\n\t", "exec &>/dev/null; echo x", "sleep 0.1"):
        assert bash(session, script).text


def test_sixteen_sessions_do_not_touch_each_other(rootfs: Rootfs) -> None:
    """Sixteen sessions that take turns in one process each see their own files and folder only."""
    with ExitStack() as stack:
        sessions = [stack.enter_context(opened(rootfs)) for _ in range(16)]
        for number, each in enumerate(sessions):
            bash(each, f"mkdir /work; cd /work; touch {number}; n={number}")
        shown = [bash(each, "pwd; ls; echo $n").text for each in sessions]
    assert shown == [f"The output of the OS:\n\n/work\n{n}\n{n}\n" for n in range(16)]


@pytest.mark.parametrize(("open_file", "stride"), [(DEV, 2), (TRAIN, 90)])
def test_gold_succeeds_and_doing_nothing_does_not(
    rootfs: Rootfs, benchmark_data: Folder, open_file: str, stride: int
) -> None:
    """A sample of real tasks: the benchmark's own solution scores 1 but for the known misses, doing nothing 0."""
    made = environment(benchmark_data("os_interaction"), rootfs, open_file=open_file)
    tasks = made.tasks(Split.TRAIN)[::stride]
    scores = []
    for task in tasks:
        idle, golden = made.open(task, 0), made.open(task, 0)
        with ExitStack() as stack:
            stack.callback(idle.close)
            stack.callback(golden.close)
            assert idle.opening == golden.opening
            before = idle.score().value
            idle.step(call("finish_action", thought="nothing to do"))
            scores.append((before, idle.score().value, play(made.problem(task), golden).value))
    assert scores == [(0.0, 0.0, float(task.task_id not in KNOWN_MISSES)) for task in tasks]


def test_a_task_of_others_is_refused(rootfs: Rootfs, benchmark_data: Folder) -> None:
    """A task that is not on offer, or that was changed, opens no sandbox."""
    made = environment(benchmark_data("os_interaction"), rootfs)
    task = made.tasks(Split.TRAIN)[0]
    for stranger in (task.model_copy(update={"task_id": "x"}), task.model_copy(update={"text": "x"})):
        with pytest.raises(UserError, match="is no task of os_interaction"):
            made.open(stranger, 0)
