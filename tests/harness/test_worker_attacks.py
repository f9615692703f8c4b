"""What hostile rule code tries, and that none of it gets out.

An attack reports REACHED. Where a kernel layer is the defence, the same attack is played twice: with the layers
it must fail, without them it must succeed, or the test would show nothing.
"""

from __future__ import annotations

import ast
import asyncio
import ctypes
import json
import os
import pickle
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from worker_play import OPENING, STOCK, Stage, ask_one, children_of, rule

from evolve.harness.worker import Layers, RuleReply, WorkerPool
from evolve.harness.worker.child import seccomp
from evolve.harness.worker.child.sandbox import OUTGOING
from evolve.redteam.rule_code import (
    DESCRIPTORS,
    ESCAPE,
    EXECUTABLE,
    FORKS,
    HEAD,
    LOOP,
    MEMORY,
    REACHED,
    READS,
    SIGNAL,
    SOCKETS,
    TWO_GIB,
    VARIABLES,
    RuleAttack,
    socket_attack,
)
from evolve.redteam.rules import undefended_words

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel layers are those of Linux")
CANARY = "REACHED-5d1f"
Play = Callable[..., RuleReply]


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    with Stage() as stage:
        yield stage.play


@pytest.fixture
def is_contained(play: Play) -> Callable[..., None]:
    """Play an attack with the layers: it must fail; and without them: it must get through."""

    def playing(body: str, text: str = "", *, has_control: bool = True) -> None:
        reply = play(body, text=text)
        assert reply.kind in ("fault", "pass")
        assert "REACHED" not in reply.text
        if has_control:
            assert "REACHED" in play(body, text=text, layers=Layers.NONE).text

    return playing


@pytest.mark.parametrize("name", [name for name in READS if name != "exec"])
def test_files_and_programs_are_out_of_reach(is_contained, name, tmp_path):
    """A gold file that everybody may read cannot be read, measured, or handed to a program."""
    gold = tmp_path / "gold.txt"
    gold.write_text(CANARY)
    is_ordinary = os.geteuid() != 0  # whose forks end at RLIMIT_NPROC
    is_contained(READS[name], str(gold), has_control=not (is_ordinary and name in ("popen", "system")))


def test_a_link_to_a_file_is_no_way_in(is_contained, tmp_path):
    """A symbolic link is not followed to the gold file either."""
    (tmp_path / "gold.txt").write_text(CANARY)
    (tmp_path / "link").symlink_to(tmp_path / "gold.txt")
    is_contained(READS["open by path"], str(tmp_path / "link"))


def test_another_program_cannot_take_the_worker_over(play):
    """`exec` fails with the layers; without them the worker is gone and its rules are off."""
    assert "PermissionError" in play(READS["exec"]).text
    assert play(READS["exec"], layers=Layers.NONE, patience_s=0.3).fault in ("timeout", "crashed")


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's ptrace scope may hide the control's success")
def test_the_memory_of_the_host_is_out_of_reach(is_contained):
    """A secret in the host's heap, at a known address, is not readable even as root."""
    secret = ctypes.create_string_buffer(CANARY.encode())
    where = f"{os.getpid()} {ctypes.addressof(secret)}"
    is_contained(MEMORY, where)


@pytest.mark.parametrize("body", [VARIABLES, SIGNAL], ids=["variables", "signal"])
def test_the_process_of_the_host_is_out_of_reach(is_contained, body):
    """Its variables cannot be read and it cannot be signalled."""
    is_contained(body, str(os.getpid()))


WALK = """
words = list(os.environ.values())
for thing in sys.modules["gc"].get_objects():
    if isinstance(thing, dict):
        words += [word for word in list(thing.values()) if isinstance(word, str)]
return Block(repr([word for word in words if word.startswith("REACHED-") and len(word) < 30]))
"""


def test_the_worker_holds_nothing_of_the_host(play, monkeypatch):
    """A walk through the garbage collector's objects and the variables finds no secret and no key of the host."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    held = {"gold": CANARY, "more": []}  # a dict of texts alone is none of the collector's
    assert play(WALK).text == "[]"
    control = f"import gc, os, sys\nBlock, held = print, {held!r}\ndef walk():\n{textwrap.indent(WALK, '    ')}\nwalk()"
    found = subprocess.run([sys.executable, "-c", control], capture_output=True, text=True, check=True).stdout
    assert found.count(held["gold"]) == 2  # the control: a process that has both finds them in heap and variables


def test_the_worker_is_given_no_variables_and_no_frames(play):
    """Its environment is fixed variables, its arguments are its name, and no frame of the host is above it."""
    body = """
frame, names = sys._getframe(), []
while frame:
    names.append(frame.f_code.co_name)
    frame = frame.f_back
return Block(repr([sorted(os.environ), len(sys.argv), "play" in names]))
"""
    expected = "[['LC_CTYPE', 'LD_BIND_NOW', 'PATH', 'PYTHONHASHSEED'], 1, False]"  # the first where Python adds it
    assert play(body).text in (expected, expected.replace("'LC_CTYPE', ", ""))


@pytest.mark.parametrize("name", SOCKETS)
def test_no_socket_can_be_made(is_contained, name):
    """No kind of network or local socket exists for a rule."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        is_contained(socket_attack(name), port)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64")
def test_rare_system_calls_are_refused(play):
    """Each of the calls that have been used to leave filters answers EPERM, also when made by number."""
    numbers = {"io_uring_setup": 425, "openat2": 437, "open_by_handle_at": 304, "clone3": 435, "execveat": 322}
    numbers |= {"ptrace": 101, "pidfd_open": 434, "pidfd_getfd": 438, "memfd_create": 319, "bpf": 321, "unshare": 272}
    numbers |= {"process_vm_readv": 310, "userfaultfd": 323, "keyctl": 250, "prctl": 157, "prlimit64": 302, "kill": 62}
    numbers |= {"mount": 165, "dup": 32, "close": 3, "rt_sigaction": 13, "setns": 308, "shmget": 29, "mq_open": 240}
    body = f"""
ctypes = sys.modules["ctypes"]
libc = ctypes.CDLL(None, use_errno=True)
odd = []
for name, number in {numbers!r}.items():
    ctypes.set_errno(0)
    if libc.syscall(number, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 1:
        odd.append(name)
return Block(repr(odd))
"""
    assert play(body).text == "[]"
    assert len(ast.literal_eval(play(body, layers=Layers.NONE).text)) > 15  # the control


def test_memory_cannot_be_made_executable(is_contained):
    """A rule cannot map machine code of its own."""
    is_contained(EXECUTABLE)


@pytest.mark.parametrize("name", FORKS)
def test_no_process_and_no_thread_can_be_started(is_contained, name):
    """Neither a fork bomb nor a daemon that outlives the episode can begin."""
    is_contained(FORKS[name], has_control=os.geteuid() == 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user cannot fork here at all")
def test_without_layers_a_child_of_a_worker_dies_with_its_group():
    """In the weakest tier a forked child that stays in the group is killed when the episode ends."""

    async def playing() -> None:
        async with WorkerPool(minimum_tier="rlimits", layers=Layers.NONE) as pool:
            body = "child = os.fork()\nif child == 0:\n    while True:\n        pass\nreturn Block(str(child))"
            worker = await pool.start_episode({"action.py": rule(body, top=ESCAPE)}, OPENING)
            child = int((await ask_one(worker)).text)
            assert _runs(child)
            await worker.close()
            for _ in range(50):
                if not _runs(child):
                    return
                await asyncio.sleep(0.01)
            pytest.fail("the child outlived the episode")

    asyncio.run(playing())


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("body", "fault", "word"),
    [
        ("return Block(str(len(bytearray(2 << 30))))", "raised", "MemoryError"),
        ("f = lambda n: f(n + 1)\nf(0)", "raised", "RecursionError"),
        ("return Block(str(re.match('(a+)+$', 'a' * 40 + 'b')))", "timeout", "processor time"),
        ("return Block(str(9**9**9)[:9])", "timeout", "processor time"),
        ("while True:\n    pass", "timeout", "action.py:"),
        (
            "while True:\n    try:\n        while True: pass\n    except Exception:\n        pass",
            "timeout",
            "action.py:",
        ),
        ("class Stuck:\n    def __del__(self):\n        while True: pass\nx = Stuck()\nx = 1\nreturn PASS", None, ""),
        ("raise SystemExit(0)", "raised", "SystemExit"),
        ("class E(Exception):\n    def __str__(self):\n        1 / 0\nraise E", "raised", "E: no message"),
        ("class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E", "raised", "E"),
    ],
)
def test_waste_ends_at_its_limit_and_the_worker_lives(play, body, fault, word):
    """Memory, recursion, regular expressions, numbers and loops cost the rule its turn, and nobody else."""
    reply = play(body)
    assert reply.fault == fault
    assert word in reply.text


def test_limits_are_what_ends_waste(play):
    """Two gibibytes are refused to a rule and granted to a plain child; a loop ends at its limit, if that is low."""
    assert REACHED not in play(TWO_GIB).text
    assert undefended_words([RuleAttack("", "", TWO_GIB)], {"nothing": ""}) == [REACHED]
    assert play(LOOP).fault == "timeout"
    assert play(LOOP, call_timeout_s=60, patience_s=60).text == REACHED


def test_what_a_rule_leaves_for_the_end_does_not_run(play):
    """A handler for the interpreter's end, which loops, holds up neither the answer nor the end of the worker."""
    loop = "def loop():\n    while True: pass\n"
    began = time.monotonic()
    assert play(loop + "sys.modules['builtins'].__import__('atexit').register(loop)\nreturn PASS").kind == "pass"
    assert time.monotonic() - began < 8
    control = [sys.executable, "-ISc", "import atexit\n" + loop + "atexit.register(loop)"]
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(control, timeout=1)


@pytest.mark.parametrize(
    "body",
    [
        "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass",
        "os.read(3, 1)",
        "sys.modules['signal'].setitimer(2, 0)\nwhile True:\n    pass",
    ],
)
def test_a_hang_that_nothing_else_ends_is_killed(play, body):
    """A rule that swallows or disarms its own limit is killed with its worker after the host's patience."""
    reply = play(body, call_timeout_s=0.05, patience_s=0.4)
    assert reply.fault == "timeout"
    assert "BaseException" in body or "0.4 s" in reply.text  # the first may also be caught between its two loops


@pytest.mark.parametrize(
    ("top", "word"),
    [
        ("while True: pass", "processor time"),
        ("while True:\n    try:\n        while True: pass\n    except BaseException: pass", "load"),
        ("import os", "may not import 'os'"),
        ("def (", "action.py:2"),
        ("1 / 0", "action.py:2: ZeroDivisionError"),
        ("raise SystemExit", "SystemExit"),
        (ESCAPE + "os._exit(0)", "died"),
        (ESCAPE + "os.kill(os.getpid(), 9)", "PermissionError"),
        ("@trajectory_rule(id='trajectory.x', strength='note', evidence='e')\ndef y(v, m): return PASS", "layer"),
        ("@action_rule(id='action.stock', strength='note', evidence='e')\ndef y(v, m): return PASS", "twice"),
        ("@action_rule(id='Bad', strength='note', evidence='e')\ndef y(v, m): return PASS", "'Bad'"),
        ("@action_rule(id='action.y', strength='hard', evidence='e')\ndef y(v, m): return PASS", "hard"),
    ],
)
def test_a_file_that_does_not_load_is_said_so(top, word):
    """Whatever a file does while it loads, the host gets one sentence, and the next episode starts."""

    async def playing() -> None:
        async with WorkerPool(load_timeout_s=0.1, patience_s=0.5) as pool:
            worker = await pool.start_episode({"action.py": HEAD + top + "\n" + STOCK}, OPENING)
            assert worker.load_error is not None
            assert word in worker.load_error
            assert worker.declarations == ()
            after = await pool.start_episode({"action.py": HEAD + STOCK}, OPENING)
            assert (await ask_one(after, "action.stock", "a")).text == "stock a"

    asyncio.run(playing())


def test_a_forged_list_of_rules_gives_no_rule():
    """A file that writes its own declarations past the protocol gets none of its rules asked."""

    async def playing() -> None:
        async with WorkerPool() as pool:
            forged = ESCAPE + "os.write(4, b'{\"declarations\":[]}\\n')\n"
            worker = await pool.start_episode({"action.py": HEAD + forged + STOCK}, OPENING)
            assert worker.declarations == ()

    asyncio.run(playing())


def test_output_goes_nowhere(play, capfd):
    """Fifty megabytes on standard output costs the host nothing and shows nowhere."""
    body = "for _ in range(50):\n    print('x' * 2**20)\nos.write(2, b'y' * 2**20)\nreturn PASS"
    assert play(body, call_timeout_s=10).kind == "pass"
    assert capfd.readouterr() == ("", "")
    subprocess.run([sys.executable, "-ISc", "print('x' * 2**16)"], check=True)  # the control: a plain child is heard
    assert len(capfd.readouterr().out) == 2**16 + 1


LIE = "os.write(4, {line})\nreturn PASS"


@pytest.mark.parametrize(
    "line",
    [
        "b'{\"score\":1}\\n'",
        'b\'{"id":99,"outcomes":[{"kind":"pass"}]}\\n\'',
        'b\'{"id":1,"outcomes":[]}\\n\'',
        'b\'{"id":1,"outcomes":[{"kind":"pass"},{"kind":"pass"}]}\\n\'',
        'b\'{"id":1,"outcomes":[{"kind":"pass"}],"score":1}\\n\'',
        "b'{\"id\":NaN}\\n'",
        "b'[' * 100000 + b']' * 100000 + b'\\n'",
        "b'9' * 5000 + b'\\n'",
        "b'\"' + bytes([255, 0]) + b'\"\\n'",
        "b'\"' + chr(92).encode() + b'ud800\"\\n'",
        "sys.modules['marshal'].dumps({'id': 1}) + b'\\n'" if "marshal" in sys.modules else "b'\\x80\\n'",
        "b'\\x80\\x04cos\\nsystem\\n(S\\'true\\'\\ntR.'",
    ],
)
def test_forged_answers_end_the_worker_and_nothing_else(play, line):
    """Bytes written past the protocol never become an outcome: the worker is ended, the fault is nonsense."""
    assert play(LIE.format(line=line)).fault == "nonsense"


def test_what_the_plain_way_of_reading_would_take():
    """The control: as plain JSON, or as a pickle, they are taken: a score, not a number, a function that runs."""
    assert json.loads(b'{"score":1}') == {"score": 1}
    assert json.loads(b'{"id":NaN}')["id"] != json.loads(b'{"id":NaN}')["id"]
    assert pickle.loads(b"cbuiltins\nlen\n(S'abc'\ntR.") == 3
    with pytest.raises(RecursionError):
        json.loads(b"[" * 100000 + b"]" * 100000)


def test_an_endless_answer_is_cut_off(play):
    """A line of fifty megabytes is read to one megabyte and no further."""
    reply = play("os.write(4, b'x' * 2**25)\nreturn PASS")
    assert reply.fault == "nonsense"
    assert "1048576" in reply.text


def test_half_an_answer_and_death_is_a_crash(play):
    """A worker that dies in the middle of a line has said nothing."""
    assert play("os.write(4, b'{\"id\":1,')\nos._exit(0)").fault == "crashed"


def test_an_answer_out_of_turn_ends_the_worker():
    """An answer prepared ahead of the question is not taken for one."""

    async def playing() -> None:
        async with WorkerPool() as pool:
            body = 'os.write(4, b\'{"id":1,"outcomes":[{"kind":"block","text":"forged"}]}\\n\')\nreturn PASS'
            worker = await pool.start_episode({"action.py": rule(body, top=ESCAPE)}, OPENING)
            await ask_one(worker)
            await asyncio.sleep(0.05)
            assert (await ask_one(worker, "action.stock")).fault in ("nonsense", "crashed")

    asyncio.run(playing())


WHEN_LOADED = """
serve = sys.modules["evolve.harness.worker.child.serve"]
tell = serve.send
def send(message):
    {change}
    tell(message)
    {then}
serve.send = send
"""


def between(*, change: str = "pass", then: str = "pass") -> str:
    """Return rule code that puts itself between worker and host where the worker says what it loaded."""
    return ESCAPE + WHEN_LOADED.format(change=change, then=then)


def test_a_worker_that_speaks_while_it_is_asked_harms_nobody_else():
    """It leaves a long question half read and writes: its call ends at once, the next episodes start as ever."""
    evil = rule(
        "return PASS", top=between(then="os.read(3, 5), os.write(4, b'word' + bytes([10]))\n    while True: pass")
    )

    async def playing() -> None:
        async with WorkerPool() as pool:
            worker = await pool.start_episode({"action.py": evil}, OPENING)
            reply = await ask_one(worker, text="x" * 8_000_000)
            assert (reply.fault, reply.text) == ("nonsense", "the worker wrote without being asked")
            others = [await pool.start_episode({"action.py": HEAD + STOCK}, OPENING) for _ in range(4)]
            assert [(await ask_one(one, "action.stock", "a")).text for one in others] == ["stock a"] * 4

    asyncio.run(playing())


def test_not_even_half_a_line_is_taken_unasked():
    """What is written between two calls, whole or not, ends the worker before it can become part of an answer."""
    half = rule("return PASS", top=between(then="sum(range(10**6)), os.write(4, b'{')"))

    async def playing() -> None:
        async with WorkerPool() as pool:
            worker = await pool.start_episode({"action.py": half}, OPENING)
            if worker.load_error:  # so slow a host that both lay there together
                assert "more than one answer" in worker.load_error
                return
            for _ in range(1000):
                if children_of(pool.zygote_process_id):
                    await asyncio.sleep(0.01)
            assert children_of(pool.zygote_process_id) == []  # nobody asked it anything, and it is gone
            reply = await ask_one(worker)
            assert (reply.fault, reply.text) == ("nonsense", "the worker wrote without being asked")

    asyncio.run(playing())


def test_an_id_is_declared_once():
    """A worker that names a rule twice has no rule: one would stay on where a fault switches the other off."""

    async def playing() -> None:
        async with WorkerPool() as pool:
            twice = rule("return PASS", top=between(change="message['declarations'] *= 2"))
            worker = await pool.start_episode({"action.py": twice}, OPENING)
            assert worker.declarations == ()
            assert worker.load_error == "the id 'action.x' is used twice"

    asyncio.run(playing())


def test_writing_to_every_descriptor_reaches_nobody(play):
    """Apart from its own channel and /dev/null a worker has no descriptor to write to."""
    assert play(DESCRIPTORS, text=str(OUTGOING)).text == "[0, 1, 2]"
    (wrote,) = undefended_words([RuleAttack("", "", DESCRIPTORS)], {"nothing": "3"})
    assert max(json.loads(wrote.replace(REACHED, ""))) > 3  # the control: a plain child writes to a pipe of its host


def test_patching_the_interpreter_changes_no_other_episode():
    """Replaced functions die with the worker; the next episode is as if nothing had been."""
    top = ESCAPE + "sys.modules['json'].loads = sys.modules['builtins'].len = lambda *a, **k: 1 / 0\n"

    async def playing() -> list[str]:
        async with WorkerPool() as pool:
            said = []
            for before in ("", top, ""):
                worker = await pool.start_episode({"action.py": HEAD + before + STOCK}, OPENING)
                said.append((await ask_one(worker, "action.stock", "a")).text)
                await worker.close()
            return said

    first, patched, last = asyncio.run(playing())
    assert first == last == "stock a"
    assert patched != first


def test_the_hosts_other_work_goes_on_while_a_rule_hangs():
    """A hung worker blocks neither the loop nor other episodes, and takes no thread."""
    before = threading.active_count()

    async def playing() -> int:
        async with WorkerPool(patience_s=0.5) as pool:
            hung = await pool.start_episode({"action.py": rule("os.read(3, 1)", top=ESCAPE)}, OPENING)
            other = await pool.start_episode({"action.py": HEAD + STOCK}, OPENING)
            waiting = asyncio.create_task(ask_one(hung))
            answered = 0
            while not waiting.done():
                assert (await ask_one(other, "action.stock")).kind == "block"
                answered += 1
            assert (await waiting).fault == "timeout"
            return answered

    assert asyncio.run(playing()) > 50
    assert threading.active_count() <= before


def _judge(code: bytes, words: dict[int, int]) -> int:
    """Interpret a filter on a system call given as offset -> word."""
    at, accumulator = 0, 0
    instructions = list(struct.iter_unpack("=HBBI", code))
    while True:
        kind, if_true, if_false, operand = instructions[at]
        at += 1
        if kind == seccomp.RETURN:
            return operand
        if kind == seccomp.LOAD:
            accumulator = words[operand]
            continue
        tests = {seccomp.IF_EQUAL: accumulator == operand, seccomp.IF_AT_LEAST: accumulator >= operand}
        at += if_true if {**tests, seccomp.IF_ANY_BIT: bool(accumulator & operand)}[kind] else if_false


@pytest.mark.parametrize("machine", seccomp.TABLES)
def test_the_filter_allows_its_list_and_kills_foreign_numbering(machine):
    """On both architectures: listed calls pass, executable memory and all others are refused, foreign calls kill."""
    table = seccomp.TABLES[machine]
    code = seccomp.program(table)

    def judge(number: int, third: int = 0, architecture: int = table.architecture) -> int:
        words = {seccomp.AT_NUMBER: number, seccomp.AT_ARCHITECTURE: architecture, seccomp.AT_THIRD_ARGUMENT: third}
        return _judge(code, words)

    allowed = {number for number in range(600) if judge(number) == seccomp.ALLOW}
    assert allowed == {*table.free, *table.unexecutable}
    assert {judge(number, third=7) for number in table.unexecutable} == {seccomp.REFUSE}
    assert judge(600) == seccomp.REFUSE
    assert judge(table.free[0], architecture=0x40000003) == seccomp.KILL
    if table.has_x32:
        assert judge(table.free[0] | seccomp.X32_BIT) == seccomp.KILL
