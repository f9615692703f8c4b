"""What keeping the prefix of a local model's prompts saves: the same episodes in each mode of `model.prompt_cache`.

    python benchmarks/prompt_cache.py service_desk --model FILE.gguf --tasks 4 [--json]

Each mode is a workspace of its own, so nothing is taken from a cache of completions. `ratio` is the wall time of all
episodes over that of "exact" in the same run; `same` says how many episodes went as in "exact", call by call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from episodes import TEMPLATE, play

from evolve.config import load_config
from evolve.records import Episode
from evolve.workspace import start_workspace

MODES = ("exact", "prefix", "warm")


@dataclass(frozen=True)
class Measured:
    """One mode: seconds for all episodes, over those of "exact", and what was played."""

    mode: str
    wall_s: float
    ratio: float
    episodes: int
    requests: int
    solved: int
    same: int


def main() -> None:
    """Play all modes and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment")
    parser.add_argument("--model", type=Path, required=True, help="a GGUF file")
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    played = {mode: _played(mode, chosen.environment, chosen.model, chosen.tasks) for mode in MODES}
    found = [_measured(mode, played[mode], played["exact"]) for mode in MODES]
    if chosen.json:
        print(json.dumps([asdict(one) for one in found]))
        return
    print(f"{'':8} {'wall s':>8} {'ratio':>6} {'requests':>9} {'solved':>7} {'as exact':>9}")
    for one in found:
        whole = f"{one.mode:8} {one.wall_s:8.1f} {one.ratio:6.2f} {one.requests:9} {one.solved:7}"
        print(f"{whole} {one.same:5} of {one.episodes}")


def _played(mode: str, environment: str, model: Path, tasks: int) -> list[Episode]:
    with tempfile.TemporaryDirectory(prefix="evolve-prompt-cache-") as folder:
        root = Path(folder).resolve() / "workspace"
        start_workspace(root, [environment], date=datetime.now(UTC))
        usual = {
            "environment": environment,
            "model.kind": "local",
            "model.path": str(model.resolve()),
            "model.chat_template": str(TEMPLATE),
            "model.tool_choice": "required",
            "model.temperature": 0.0,
            "model.timeout_s": 900,
            "model.prompt_cache": mode,
            "rollout.episode_timeout_s": 3600,
        }
        assignments = tuple(f"{key}={json.dumps(value)}" for key, value in usual.items())
        return asyncio.run(play(root, load_config(root, assignments=assignments).config, tasks))[2]


def _measured(mode: str, episodes: list[Episode], exact: list[Episode]) -> Measured:
    wall, whole = (sum(one.wall_s for one in of) for of in (episodes, exact))
    return Measured(
        mode=mode,
        wall_s=round(wall, 1),
        ratio=round(wall / whole, 2),
        episodes=len(episodes),
        requests=sum(one.requests for one in episodes),
        solved=sum(one.is_success for one in episodes),
        same=sum(_calls(one) == _calls(other) for one, other in zip(episodes, exact, strict=True)),
    )


def _calls(episode: Episode) -> list[str]:
    return [step.model_dump_json(include={"call", "observation"}) for step in episode.steps]


if __name__ == "__main__":
    main()
