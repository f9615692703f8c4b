"""An environment whose episodes take ten calls and no time, and a harness with rules that look at each of them."""

from __future__ import annotations

from collections.abc import Sequence

from evolve.harness.artifact import Harness, read_harness
from evolve.protocols import EnvironmentCard
from evolve.records import Call, Look, LoopSplit, Observation, Opening, Score, Split, Task, Tool

CALLS = 10
WORDS = "a line of the record that was written before this one began, kept so that it can be looked up later on; "
TOOL = Tool(
    name="write_line",
    description="Write one line of the report.",
    parameters={
        "type": "object",
        "properties": {"line": {"type": "string"}, "page": {"type": "integer"}},
        "required": ["line", "page"],
    },
)

ACTION = """
from evolve.rules import PASS, Block, Rewrite, action_rule


@action_rule(id="action.fill-page", strength="rewrite", evidence="a benchmark")
def fill_page(view, memory):
    if view.proposed and view.proposed.arguments and "page" not in view.proposed.arguments:
        return Rewrite(view.proposed.tool, {**view.proposed.arguments, "page": 1})
    return PASS


@action_rule(id="action.block-empty", strength="block", evidence="a benchmark")
def block_empty(view, memory):
    if view.proposed and view.proposed.arguments and not view.proposed.arguments.get("line", "").strip():
        return Block("Write something.")
    return PASS
"""

TRAJECTORY = """
from evolve.rules import PASS, Note, trajectory_rule


@trajectory_rule(id="trajectory.count-repeats", strength="warn", evidence="a benchmark")
def count_repeats(view, memory):
    seen = [step.executed.arguments["line"] for step in view.history if step.executed]
    if view.steps_left == 4 and seen.count(seen[-1]) > 3:
        return Note("This line stands there already.")
    return PASS
"""

CONTRACT = """
[[system]]
id = "contract.be-brief"
text = "Keep each line short."
evidence = "a benchmark"
"""


def benchmark_harness() -> Harness:
    """Return a harness with all layers but skills in use."""
    texts = {
        "harness.toml": 'schema_version = 1\nenvironment = "ten_calls"\n',
        "contract.toml": CONTRACT,
        "action.py": ACTION,
        "trajectory.py": TRAJECTORY,
    }
    return read_harness({path: text.encode() for path, text in texts.items()})


class TenCalls:
    """Tasks that are done after ten lines.

    Args:
        count: tasks in the training split.
        context_bytes: length of the user's first message.
    """

    def __init__(self, count: int, context_bytes: int) -> None:
        self._count = count
        self._context = (WORDS * (context_bytes // len(WORDS) + 1))[:context_bytes]

    @property
    def card(self) -> EnvironmentCard:
        """Name and limits."""
        return EnvironmentCard(
            name="ten_calls",
            version="1",
            step_limit=CALLS + 2,
            pass_mark=1.0,
            description="Write a report of ten lines.",
            digest="ten_calls",
        )

    def tasks(self, split: LoopSplit) -> Sequence[Task]:
        """List the tasks."""
        return [
            Task(
                task_id=f"report-{number:04d}",
                environment="ten_calls",
                split=Split.TRAIN,
                family="report",
                text=f"Write report {number}.",
            )
            for number in range(self._count)
        ]

    def heldout_tasks(self, look: Look) -> Sequence[Task]:
        """List none."""
        return []

    def heldout_digest(self) -> str:
        """Return a commitment to nothing."""
        return ""

    def open(self, task: Task, trial: int) -> Report:
        """Open a report."""
        return Report(Opening(system="You write reports.", user=f"{task.text}\n{self._context}"))


class Report:
    """A report that is being written."""

    tools: Sequence[Tool] = (TOOL,)

    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self._lines: list[str] = []

    def step(self, call: Call) -> Observation:
        """Take a line."""
        self._lines.append(str(call.arguments["line"]))
        return Observation(text=f"Line {len(self._lines)} is written.", done=len(self._lines) == CALLS)

    def say(self, text: str) -> Observation:
        """Take no notice."""
        return Observation(text="Write a line.")

    def probe(self, call: Call) -> Observation:
        """Take no notice."""
        return Observation(text="")

    def score(self) -> Score:
        """Score 1.0 for a whole report."""
        is_whole = len(self._lines) == CALLS
        return Score(value=float(is_whole), success=is_whole, version="1")

    def close(self) -> None:
        """Release nothing."""
