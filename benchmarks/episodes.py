"""Plays a few training tasks of an environment with a real local model, harness off, and says how they went.

    python benchmarks/episodes.py dbbench --model FILE.gguf --tasks 5
    python benchmarks/episodes.py tau2_telecom --model FILE.gguf --option data=DIR --set model.context=16384

One JSON line: for each task its score, steps, stop and failure class; doing nothing beside it. Traces stay in the
workspace that is named at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from evolve.assembly import make_rollout, open_bench
from evolve.classify.label import label_failure
from evolve.config import Config, load_config
from evolve.environments.conformance import do_nothing, subject_of
from evolve.harness.runtime import HarnessRuntime
from evolve.holding import open_ledger
from evolve.progress import Finished, Progress
from evolve.protocols import Environment
from evolve.records import Episode, Json, Split, Task, Usage
from evolve.rollout import Job
from evolve.store import Purpose
from evolve.workspace import Workspace, start_workspace

TEMPLATE = Path(__file__).parent.parent / "prompts" / "chat_templates" / "qwen2.5-coder-json.jinja"


class Printing(Progress):
    """Says each episode as it ends."""

    def report(self, event: object) -> None:
        if isinstance(event, Finished):
            one = event.episode
            print(f"{one.task_id}: {one.stop}, {len(one.steps)} steps, {one.wall_s:.0f} s", flush=True)


async def play(root: Path, config: Config, count: int) -> tuple[Environment, list[Task], list[Episode], Json]:
    """Play the first training tasks, one after the other; return them with what doing nothing scores."""
    workspace = Workspace(root)
    with open_ledger(workspace, config) as ledger:
        ledger.start_run("episodes", environment=config.environment, model="", base_commit="", config={})
        async with open_bench(workspace, config, ledger, environ={}, spent=Usage()) as bench:
            keeper = bench.archive.of_run("episodes")
            rollout = make_rollout(bench, config, keeper, progress=Printing(), stop=asyncio.Event())
            tasks = list(bench.environment.tasks(Split.TRAIN))[:count]
            jobs = [Job(task, 0, HarnessRuntime(None, None), "") for task in tasks]
            episodes = await rollout.roll_out(jobs, Purpose.BASELINE)
            subject = subject_of(config.environment, lambda: bench.environment, tasks=count)
            return bench.environment, tasks, episodes, do_nothing(subject).model_dump()


def tell(environment: Environment, tasks: list[Task], episodes: list[Episode], nothing: Json) -> Json:
    """Put what happened into one document."""
    session = environment.open(tasks[0], 0)
    tools = tuple(session.tools)
    session.close()
    failed = [one for one in episodes if one.status == "done" and not one.is_success]
    labels = [label_failure(one, tools) for one in failed]
    return {
        "environment": environment.card.name,
        "version": environment.card.version,
        "step_limit": environment.card.step_limit,
        "solved": sum(one.is_success for one in episodes),
        "tasks": [
            {
                "task": one.task_id,
                "score": one.score.value if one.score else None,
                "steps": len(one.steps),
                "stop": one.stop,
                "errors": dict(Counter(s.observation.error_kind for s in one.steps if s.observation.error_kind)),
            }
            for one in episodes
        ],
        "failure_classes": dict(Counter(label.failure_class for label in labels)),
        "signatures": dict(Counter(label.signature for label in labels)),
        "prompt_tokens": sum(one.usage.prompt_tokens for one in episodes),
        "doing_nothing": nothing,
    }


def main() -> None:
    """Read the command line, play, and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment")
    parser.add_argument("--model", type=Path, required=True, help="a GGUF file")
    parser.add_argument("--tasks", type=int, default=5)
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="an option of it")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a configuration value")
    parser.add_argument("--into", type=Path, help="the workspace; by default a temporary one, which is kept")
    chosen = parser.parse_args()
    root = (chosen.into or Path(tempfile.mkdtemp(prefix="evolve-episodes-"))).resolve()
    start_workspace(root, [chosen.environment], date=datetime.now(UTC))
    usual = {
        "environment": chosen.environment,
        "model.kind": "local",
        "model.path": str(chosen.model),
        "model.chat_template": str(TEMPLATE),
        "model.tool_choice": "required",
        "model.max_tokens": 256,
        "model.timeout_s": 900,
        "model.prompt_cache": "warm",
        "rollout.concurrency": 1,
        "rollout.episode_timeout_s": 3600,
    }
    assignments = [f"{key}={json.dumps(value)}" for key, value in usual.items()]
    options = [f"environments.{chosen.environment}.{option}" for option in chosen.option]
    config = load_config(root, assignments=(*assignments, *options, *chosen.set)).config
    started = time.monotonic()
    found = tell(*asyncio.run(play(root, config, chosen.tasks)))
    print(json.dumps({**found, "wall_s": round(time.monotonic() - started), "workspace": str(root)}))


if __name__ == "__main__":
    main()
