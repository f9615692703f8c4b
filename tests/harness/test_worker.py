"""What the rule worker does for rules that behave, and what it costs when it is used many times."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from worker_play import OPENING, STOCK, Stage, ask, ask_one, children_of, delta, rule, the_worker_of

from evolve.canaries import Canaries
from evolve.errors import WorkerError
from evolve.harness.worker import (
    Isolation,
    Layers,
    RuleDeclaration,
    RuleWorker,
    WorkerPool,
    call_json,
    delta_json,
    opening_json,
    seatbelt,
)
from evolve.harness.worker.child import probes
from evolve.harness.worker.child.modules import LAZY
from evolve.records import Call, Layer, Observation, ProposedCall, Step, Strength, Tool
from evolve.redteam.rule_code import ESCAPE, HEAD
from evolve.rules import ALLOWED

IS_LINUX = sys.platform == "linux"


@pytest.fixture(scope="module")
def play():
    with Stage() as stage:
        yield stage.play


def run(story: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(story)


def with_worker(sources, story, *, opening=OPENING, **options):
    """Run a story that is given a worker with these sources."""

    async def telling():
        async with WorkerPool(minimum_tier="rlimits", **options) as pool:
            worker = await pool.start_episode(sources, opening)
            assert worker.load_error is None
            return await story(worker)

    return run(telling())


def test_declarations_come_in_the_order_of_the_files():
    """Ids, layers, strengths and evidence are read from the decorators, action rules first."""
    action = HEAD + "".join(
        f"@action_rule(id='action.{name}', strength='block', evidence='e-{name}')\ndef {name}(v, m): return PASS\n"
        for name in ("zz", "aa")
    )
    trajectory = HEAD + "@trajectory_rule(id='trajectory.t', strength='warn', evidence='e')\ndef t(v, m): return PASS\n"

    async def story(worker):
        return worker.declarations

    assert with_worker({"trajectory.py": trajectory, "action.py": action}, story) == (
        RuleDeclaration("action.zz", Layer.ACTION, Strength.BLOCK, "e-zz", 0),
        RuleDeclaration("action.aa", Layer.ACTION, Strength.BLOCK, "e-aa", 1),
        RuleDeclaration("trajectory.t", Layer.TRAJECTORY, Strength.WARN, "e", 2),
    )


SHOW = """
look = view.tool("look")
view_text = repr([view.task, look.read_only, look.parameters["type"], view.text])
past = [(s.text, s.proposed.raw, s.executed, s.observation, s.error, s.admissible) for s in view.history]
return Block(view_text + repr(past) + repr([view.proposed.tool, view.proposed.arguments, view.admissible]) +
             repr([view.steps_left, view.step_limit, view.probes]))
"""


def test_a_rule_sees_the_episode_and_the_history_grows_by_deltas():
    """The view is what an agent sees; each step is sent once and stays."""
    tool = Tool(name="look", description="d", parameters={"type": "object"}, read_only=True)
    wrote = ProposedCall(call_id="1", tool="look", arguments_text="{", arguments=None)
    step = Step(
        index=0, turn=0, text="I look", proposed=wrote, observation=Observation(text="dark", admissible=("go",))
    )
    now = delta_json(
        steps=[step], text="again", proposed=Call(tool="go", arguments={"a": [1]}), admissible=["go"], steps_left=2
    )

    async def story(worker):
        first = (await worker.run(Layer.ACTION, ["action.x"], now))[0].text
        second = (await worker.run(Layer.ACTION, ["action.x"], {**now, "probes": ["p"]}))[0].text
        return first, second

    first, second = with_worker({"action.py": rule(SHOW)}, story, opening=opening_json("find it", [tool], 9))
    past = "('I look', '{', None, 'dark', None, ('go',))"
    shown = "['find it', True, 'object', 'again'][{}]['go', {{'a': [1]}}, ('go',)][2, 9, {}]"
    assert first == shown.format(past, "()")
    assert second == shown.format(f"{past}, {past}", "('p',)")


def test_memory_is_the_rules_own_and_lasts_one_episode():
    """A counter in memory counts on within an episode and begins anew in the next; so does module state."""
    body = "memory['n'] = memory.get('n', 0) + 1\nSEEN.append(1)\nreturn Block(f\"{memory['n']} {len(SEEN)}\")"
    sources = {"action.py": rule(body, top="SEEN = []")}

    async def telling():
        async with WorkerPool() as pool:
            said = []
            for _ in range(2):
                worker = await pool.start_episode(sources, OPENING)
                said += [(await ask_one(worker)).text for _ in range(2)]
            return said

    assert run(telling()) == ["1 1", "2 2", "1 1", "2 2"]


@pytest.mark.parametrize(
    "change",
    ["view.proposed.arguments['a'] = 1", "view.proposed.arguments['b'].append(1)", "view.proposed.arguments.pop('b')"],
)
def test_a_rule_cannot_spoil_what_the_next_rule_sees(play, change):
    """What is shown reads like dicts and lists, and refuses to be changed."""

    async def story(worker):
        return (await ask(worker, proposed=Call(tool="t", arguments={"b": [0]})))[0]

    reply = with_worker({"action.py": rule(f"{change}\nreturn PASS")}, story)
    assert reply.fault == "raised"
    assert "cannot be changed" in reply.text


def test_the_call_ends_at_the_first_rule_that_needs_the_host():
    """Passes, notes and faults go on to the next rule; a block, rewrite, probe or force ends the call."""
    sources = {"action.py": rule("return PASS")}

    async def story(worker):
        return [
            [r.kind for r in await ask(worker, "action.x", "action.stock")],
            [r.kind for r in await ask(worker, "action.stock", "action.x")],
            list(await ask(worker, *())) and "asked",
        ]

    assert with_worker(sources, story) == [["pass", "block"], ["block"], "asked"]


def test_notes_do_not_end_the_call_and_probes_go_to_the_first_rule_only():
    """All trajectory rules are asked in one message; the answers to a probe are shown to the rule that asked."""
    rules = HEAD + "".join(
        f"@trajectory_rule(id='trajectory.{n}', strength='note', evidence='e')\n"
        f"def {n}(view, memory): return Note('{n}' + repr(view.probes))\n"
        for n in "ab"
    )

    async def story(worker):
        return await worker.run(Layer.TRAJECTORY, ["trajectory.a", "trajectory.b"], delta(probes=["seen"]))

    assert [r.text for r in with_worker({"trajectory.py": rules}, story)] == ["a('seen',)", "b()"]


def test_rewrites_and_probes_arrive_as_plain_values(play):
    """Shown values may be handed back; tuples become lists."""
    reply = play("return Rewrite('go', {**dict(n=(1, 2.5, None, True)), 'a': view.text})", text="é")
    assert (reply.kind, reply.tool, reply.arguments) == ("rewrite", "go", {"n": [1, 2.5, None, True], "a": "é"})
    assert play("return Probe('look', {})").kind == "probe"


@pytest.mark.parametrize(
    "body",
    [
        "return None",
        "return 'block'",
        "return Block",
        "return Block(7)",
        "return Block('')",
        "return Rewrite('go', None)",
        "return Rewrite('go', {1: 2})",
        "return Rewrite('go', {'x': float('nan')})",
        "return Rewrite('go', {'x': float('inf')})",
        "return Rewrite('go', {'x': 10**5000})",
        "return Rewrite('go', {'x': {1, 2}})",
        "d = {}\nd['d'] = d\nreturn Rewrite('go', d)",
        "return Block(chr(0xd800))",
        "return Block('x' * 70000)",
        "return Note('not for this layer')",
    ],
)
def test_what_is_no_outcome_is_nonsense(play, body):
    """A wrong type, a number without a word in JSON, depth, size or layer is a fault, and the worker lives on."""
    assert play(body).fault == "nonsense"


@pytest.mark.parametrize(
    ("strength", "body", "fault"),
    [
        ("block", "return Rewrite('go', {})", "over_strength"),
        ("note", "return Block('no')", "over_strength"),
        ("note", "return Probe('look', {})", None),
        ("rewrite", "return Block('no')", None),
    ],
)
def test_an_outcome_stronger_than_declared_is_a_fault(strength, body, fault):
    """The declared strength is the most that a rule may do."""

    async def story(worker):
        return (await ask_one(worker)).fault

    assert with_worker({"action.py": rule(body, strength=strength)}, story) == fault


def test_a_fault_names_the_error_and_the_line_in_the_rule_file(play):
    """The message leads to the place, and to no path of this machine."""
    reply = play("y = 1\nreturn 1 / 0")
    line = rule("y = 1\nreturn 1 / 0", top=ESCAPE).splitlines().index("    return 1 / 0") + 1
    assert (reply.fault, reply.text) == ("raised", f"action.py:{line}: ZeroDivisionError: division by zero")


def test_text_that_is_not_unicode_and_huge_numbers_reach_the_rule():
    """Whatever a model wrote can be shown, also lone surrogates and numbers beyond 64 bits."""

    async def story(worker):
        odd = Call(tool="t", arguments={"n": 2**70})
        return (await ask(worker, text="\ud800", proposed=odd))[0].text

    body = "return Block(repr(view.text) + str(view.proposed.arguments['n']))"
    assert with_worker({"action.py": rule(body)}, story) == f"'\\ud800'{2**70}"


def test_rules_that_are_not_declared_are_our_mistake():
    """Asking for an unknown unit, or one of the other layer, is an error of the caller."""

    async def story(worker):
        with pytest.raises(ValueError, match="action layer"):
            await ask(worker, "action.none")
        with pytest.raises(ValueError, match="trajectory layer"):
            await worker.run(Layer.TRAJECTORY, ["action.x"], delta())

    with_worker({"action.py": rule("return PASS")}, story)


def test_every_allowed_module_can_be_used_and_nothing_else_imported(play):
    """All listed modules import in a locked worker; any other is a clean error at once."""
    listed = "\n".join(f"import {name}" for name in ALLOWED if name != "__future__")
    use = "import collections, statistics, difflib, copy\n" + listed + "\nimport collections.abc\n"
    use += "collections.Counter('aab').most_common(1); statistics.quantiles([1, 2, 3]); copy.deepcopy({})\n"
    use += "@dataclasses.dataclass\nclass Point:\n    x: int = 0\nstr(Point(1))\n"
    use += "difflib.unified_diff(['a'], ['b']); ('é'.encode('cp1252'), 'é'.encode('utf-16'))\nreturn Block('used')"
    assert play(use).text == "used"
    reply = play("import random\nreturn PASS")
    assert (reply.fault, "may not import 'random'" in reply.text) == ("raised", True)


def test_the_modules_that_allowed_modules_import_late_are_loaded_early():
    """An import inside a function of an allowed module would fail in a worker, so each is on the list."""
    late = set()
    for name in ALLOWED:
        try:
            tree = ast.parse(inspect.getsource(importlib.import_module(name)))
        except (OSError, TypeError):  # built into the interpreter
            continue
        inner = [n for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)]
        late |= {alias.name for n in inner if isinstance(n, ast.Import) for alias in n.names}
        late |= {n.module for n in inner if isinstance(n, ast.ImportFrom) and n.module and not n.level}
    assert late - set(ALLOWED) - set(LAZY) == {"doctest"}  # for tests of the library's own


def test_sets_of_strings_have_one_order_in_all_workers():
    """Hashing is fixed, so that a rule that walks a set does the same in each episode and each pool."""
    body = "return Block(repr({chr(97 + n) * 3 for n in range(20)}))"

    async def story(worker):
        return (await ask_one(worker)).text

    assert len({with_worker({"action.py": rule(body)}, story) for _ in range(3)}) == 1


@pytest.mark.skipif(not IS_LINUX, reason="the kernel layers are those of Linux")
def test_the_tier_is_what_the_self_test_shows():
    """Each layer that is left out lowers the tier, and what stays open is named."""

    async def tier(layers):
        async with WorkerPool(minimum_tier="rlimits", layers=layers) as pool:
            return pool.tier, "open a file" in pool.isolation.open

    assert run(tier(Layers.SECCOMP)) == ("seccomp", False)
    assert run(tier(Layers.NONE)) == ("rlimits", True)
    assert run(tier(Layers.LANDLOCK)) == ("rlimits", False)


def test_below_the_minimum_no_pool_starts():
    """Isolation never degrades silently: the error says what was reached, what is missing and what is open."""

    async def starting():
        async with WorkerPool(minimum_tier="seccomp", layers=Layers.NONE):
            pytest.fail("started")

    with pytest.raises(WorkerError, match=r"tier 'rlimits'.*minimum is 'seccomp'.*missing: .*seccomp.*open a file"):
        run(starting())


def test_a_layer_that_leaks_does_not_count():
    """A filter that was installed but lets a probe through gives no tier."""
    report = {"refused": {}, "before": ["open a file"], "open": ["reach UDP"]}
    leaky = Isolation.of({**report, "after": {"LANDLOCK": [], "SECCOMP": ["reach UDP"]}})
    assert leaky.tier == "rlimits"
    assert "seccomp (leaks: reach UDP)" in leaky.missing
    with pytest.raises(WorkerError, match="shows nothing"):
        Isolation.of({**report, "before": [], "after": {}})


def test_the_profile_of_macos_counts_where_its_self_test_holds():
    """Not run here: files, processes and network must be shut; memory and names of files may stay open."""
    report = {"refused": {"SECCOMP": "no such layer"}, "before": [], "after": {}}
    open_still = ["stat a file", "allocate beyond the limit"]
    held = Isolation.of({**report, "open": open_still}, is_under_seatbelt=True)
    assert (held.tier, held.open) == ("seatbelt", tuple(open_still))
    assert Isolation.of({**report, "open": [*open_still, "reach TCP"]}, is_under_seatbelt=True).tier == "rlimits"
    with pytest.raises(WorkerError, match="'seatbelt', the configured minimum is 'seccomp'"):
        held.require("seccomp")
    assert set(probes.ALL) > seatbelt.SHUT


def test_the_profile_of_macos_denies_what_it_does_not_name(tmp_path):
    """Not run here: everything is denied but reading what the interpreter and the rules need; no network is named."""
    program, flag, rules, *command = seatbelt.wrapped(["/opt/python", "zygote.py"], [tmp_path])
    assert (program, flag, command) == ("/usr/bin/sandbox-exec", "-p", ["/opt/python", "zygote.py"])
    assert rules.splitlines()[1] == "(deny default)"
    assert f'(subpath "{tmp_path}")' in rules
    assert not any(word in rules for word in ("network", "mach", "/etc", "file-write*", "/Users"))


def test_a_worker_killed_in_mid_call_is_a_crash_for_that_call_only():
    """The call's rules fault, later calls of the episode say that rules are off, other episodes are untouched."""

    async def telling():
        async with WorkerPool(minimum_tier="rlimits", layers=Layers.NONE) as pool:
            top = "import re\nos = re.enum.sys.modules['os']\n"
            worker = await pool.start_episode({"action.py": rule("os.kill(os.getpid(), 9)", top=top)}, OPENING)
            other = await pool.start_episode({"action.py": HEAD + STOCK}, OPENING)
            both = await ask(worker, "action.x", "action.stock")
            assert [(r.unit, r.fault) for r in both] == [("action.x", "crashed"), ("action.stock", "crashed")]
            assert "one of 2 rules" in both[0].text
            assert "off for the episode" in (await ask_one(worker, "action.stock")).text
            assert (await ask_one(other, "action.stock", "b")).text == "stock b"

    run(telling())


@pytest.mark.parametrize("layers", [Layers.NONE, Layers.ALL], ids=["open", "shut in"])
def test_a_dead_zygote_is_replaced(layers):
    """Its workers die with it; the next episode gets a new zygote, and nothing is left over.

    Where rules are shut in none of them did it, and the episode is to be played again. Else it is a crash, for one may
    have done it to escape its verdict.
    """

    async def telling():
        async with WorkerPool(minimum_tier="rlimits", layers=layers) as pool:
            worker = await pool.start_episode({"action.py": HEAD + STOCK}, OPENING)
            first = pool.zygote_process_id
            _end(first)
            if pool.tier.startswith("seccomp"):
                with pytest.raises(WorkerError, match="from outside"):
                    await ask_one(worker, "action.stock")
            else:
                assert (await ask_one(worker, "action.stock")).fault == "crashed"
            again = await pool.start_episode({"action.py": HEAD + STOCK}, OPENING)
            assert (await ask_one(again, "action.stock", "c")).text == "stock c"
            assert pool.zygote_process_id != first

    run(telling())


@pytest.mark.skipif(not IS_LINUX, reason="rules are shut in on Linux")
def test_a_zygote_that_dies_while_rules_load_is_no_fault_of_theirs():
    """The harness is not said to be one that does not load."""

    async def telling():
        async with WorkerPool() as pool:
            slow = "sum(range(30_000_000))\n" + HEAD + STOCK
            loading = asyncio.create_task(pool.start_episode({"action.py": slow}, OPENING))
            await asyncio.sleep(0.2)
            _end(pool.zygote_process_id)
            with pytest.raises(WorkerError, match="from outside"):
                await loading

    run(telling())


class Listening(Canaries):
    """Hears each line that comes back from a worker."""

    def __init__(self) -> None:
        super().__init__({})
        self.heard: list[bytes] = []

    def refuse(self, content: str | bytes, seen_in: str) -> None:
        self.heard.append(content.encode() if isinstance(content, str) else content)
        super().refuse(content, seen_in)


def test_what_was_compiled_for_one_episode_serves_the_next_as_well():
    """Later rules do the same and fail at the same lines, whatever the first ones did to their interpreter."""
    heard = Listening()
    top = ESCAPE + "sys.modules['marshal'].dumps = sys.modules['builtins'].compile = lambda *a, **k: b''"
    sources = {"action.py": rule("return 1 / 0 if view.text else Block('well')", top=top)}

    async def telling():
        async with WorkerPool(canaries=heard) as pool:
            said = []
            for _ in range(3):
                worker = await pool.start_episode(sources, OPENING)
                said += [(await ask_one(worker, text=text)).text for text in ("", "x")]
            return said

    well, failed, *later = run(telling())
    assert later == [well, failed] * 2
    kinds = [next(iter(json.loads(line))) for line in heard.heard]
    assert kinds == ["codes", *["declarations", "id", "id"] * 3]
    assert well == "well"
    assert re.fullmatch(r"action\.py:\d+: ZeroDivisionError: division by zero", failed)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (f"{HEAD}def x(:\n", "action.py:2: SyntaxError: invalid syntax"),
        ("x = '\ud800'\n", "UnicodeEncodeError"),
    ],
)
def test_files_that_do_not_compile_say_so_each_time(source, said):
    """There is nothing to keep of them, and the next start tells it as the first did."""

    async def telling():
        async with WorkerPool() as pool:
            workers = [await pool.start_episode({"action.py": source}, OPENING) for _ in range(2)]
            return [worker.load_error for worker in workers]

    first, second = run(telling())
    assert first == second
    assert first.startswith(said)


@pytest.mark.parametrize("top", [f"TEXT = '{'€' * 250_000}'", "deep = " + "lambda: " * 900 + "1"], ids=["long", "deep"])
def test_code_that_cannot_be_passed_on_is_compiled_by_each_worker(top):
    """Rule files within the limit on their length load, whatever they compile to."""

    async def telling():
        said = []
        async with WorkerPool() as pool:
            for _ in range(2):
                worker = await pool.start_episode({"action.py": rule("return Block('well')", top=top)}, OPENING)
                said.append((await ask_one(worker)).text)
        return said

    assert run(telling()) == ["well"] * 2


def test_a_pool_that_was_closed_starts_nothing_more():
    """Starts that were under way when it was closed end as such, and no process stays."""

    async def telling():
        pool = WorkerPool()
        await pool.start()
        starts = [asyncio.create_task(pool.start_episode({"action.py": HEAD + STOCK}, OPENING)) for _ in range(6)]
        await asyncio.sleep(0.002)
        await pool.close()
        for ended in await asyncio.gather(*starts, return_exceptions=True):
            assert isinstance(ended, RuleWorker | WorkerError)
        assert pool.zygote_process_id is None

    run(telling())


def test_what_rules_draw_is_the_same_in_every_episode():
    """The one generator that they reach, in `statistics`, begins alike in each worker and with each zygote."""
    body = "return Block(repr(sys.modules['statistics'].NormalDist().samples(2)))"

    async def telling():
        said = []
        for _ in range(2):
            async with WorkerPool() as pool:
                for _ in range(2):
                    worker = await pool.start_episode({"action.py": rule(body, top=ESCAPE)}, OPENING)
                    said.append((await ask_one(worker)).text)
        return said

    first, *others = run(telling())
    assert first.startswith("[")
    assert others == [first] * 3


def test_a_worker_that_finds_no_room_among_open_files_says_so_and_takes_none():
    """However often it is tried, what was opened for it is closed again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def telling():
        async with WorkerPool() as pool:
            taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(3)]
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(taken) + 1, hard))  # all below it may be open, or not
            try:
                while True:
                    taken.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                for descriptor in taken[-3:]:
                    os.close(descriptor)  # room for one pipe and a half
            for _ in range(3):
                with pytest.raises(WorkerError, match="Too many open files; raise the limit"):
                    await pool.start_episode({"action.py": HEAD + STOCK}, OPENING)
            for descriptor in taken[:-3]:
                os.close(descriptor)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            await pool.start_episode({"action.py": HEAD + STOCK}, OPENING)

    try:
        run(telling())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_far_side_loads_where_the_c_library_has_no_prctl():
    """As on macOS: what only Linux has is looked up where it is called."""
    program = (
        "import ctypes; ctypes.CDLL = lambda *a, **k: type('Library', (), {})()\n"
        "from evolve.harness.worker.child import rehearsal, sandbox, serve, zygote"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.skipif(not IS_LINUX, reason="reads /proc")
@pytest.mark.parametrize("asking", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_job_that_is_asked_to_end_leaves_the_end_of_workers_to_the_host(asking):
    """Terminals and service managers ask all processes at once; an episode that is under way goes on."""

    async def telling():
        async with WorkerPool() as pool:
            worker = await pool.start_episode({"action.py": HEAD + STOCK}, OPENING)
            for process in (pool.zygote_process_id, await the_worker_of(pool)):
                os.kill(process, asking)
            await asyncio.sleep(0.05)
            assert (await ask_one(worker, "action.stock")).text.startswith("stock")

    run(telling())


@pytest.mark.skipif(not IS_LINUX, reason="reads /proc")
def test_a_pause_of_the_whole_machine_is_no_fault_of_a_rule():
    """A worker that got no time to answer, for nothing got any, may answer afterwards."""

    async def telling():
        async with WorkerPool(patience_s=1.0) as pool:
            worker = await pool.start_episode({"action.py": HEAD + STOCK}, OPENING)
            process = await the_worker_of(pool)
            os.kill(process, signal.SIGSTOP)
            asked = asyncio.create_task(ask_one(worker, "action.stock"))
            await asyncio.sleep(0.05)
            time.sleep(2)  # noqa: ASYNC251  the host is paused too
            os.kill(process, signal.SIGCONT)
            assert (await asked).text.startswith("stock")

    run(telling())


def test_a_cancelled_call_takes_its_worker_along():
    """An answer that nobody waits for can never be taken for the answer to a later question."""

    async def story(worker):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask_one(worker), 0.05)
        return (await ask_one(worker, "action.stock")).fault

    assert with_worker({"action.py": rule("while True: pass")}, story) == "crashed"


def test_many_episodes_at_once_and_in_a_row_leave_nothing_behind():
    """After 300 episodes, 100 of them at once, no process, no descriptor and no task is left."""

    async def episode(pool):
        worker = await pool.start_episode({"action.py": HEAD + STOCK}, OPENING)
        assert (await ask_one(worker, "action.stock", "d")).text == "stock d"
        await worker.close()

    async def telling():
        async with WorkerPool(minimum_tier="rlimits") as pool:
            await episode(pool)
            before = _descriptors()
            await asyncio.gather(*(episode(pool) for _ in range(100)))
            for _ in range(200):
                await episode(pool)
            zygote = pool.zygote_process_id
            for _ in range(300):
                if _children(zygote) == 0 and _descriptors() <= before:
                    break
                await asyncio.sleep(0.01)
            assert (_children(zygote), max(0, _descriptors() - before), len(asyncio.all_tasks())) == (0, 0, 1)
        return zygote

    zygote = run(telling())
    assert not Path(f"/proc/{zygote}").exists()


@pytest.mark.skipif(not IS_LINUX, reason="policies of the scheduler are Linux's")
@pytest.mark.parametrize(("chosen", "kept"), [("SCHED_OTHER", "SCHED_BATCH"), ("SCHED_IDLE", "SCHED_IDLE")])
def test_workers_stand_back_for_the_host(chosen, kept):
    """A worker does not take the processor of the host that wakes it; who chose a policy for all keeps it."""
    script = f"""
import asyncio, os
from evolve.harness.worker import WorkerPool

async def main():
    async with WorkerPool(minimum_tier="rlimits") as pool:
        print(os.sched_getscheduler(pool.zygote_process_id))

os.sched_setscheduler(0, os.{chosen}, os.sched_param(0))
asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(ran.stdout) == getattr(os, kept)


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if IS_LINUX else 0


def _end(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    for _ in range(300):
        if _runs(process):
            time.sleep(0.01)


def _children(process: int) -> int:
    return len(children_of(process))


def test_workers_die_with_the_host(tmp_path):
    """When the host is killed, zygote and workers end, also one that hangs."""
    script = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from worker_play import *
async def main():
    async with WorkerPool(minimum_tier="rlimits") as pool:
        worker = await pool.start_episode({{"action.py": rule("while True: pass")}}, OPENING)
        hanging = asyncio.create_task(ask_one(worker))
        await asyncio.sleep(0.05)
        print(pool.zygote_process_id, await the_worker_of(pool), flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""
    if not IS_LINUX:
        pytest.skip("reads /proc")
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as host:
        left = [int(word) for word in host.stdout.readline().split()]
        host.kill()
    assert len(left) == 2
    for _ in range(300):
        if not any(_runs(process) for process in left):
            return
        time.sleep(0.01)
    pytest.fail("a process outlived the host")


def _runs(process: int) -> bool:
    try:
        return re.search(r"\) [^ZX] ", Path(f"/proc/{process}/stat").read_text()) is not None
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_calls_show_the_models_words_where_they_were_no_json():
    """A call whose arguments did not parse keeps its raw text; no call stays none."""
    wrote = ProposedCall(call_id="1", tool="go", arguments_text="{x", arguments=None)
    assert call_json(wrote) == {"tool": "go", "arguments": None, "raw": "{x"}
    assert call_json(None) is None
