"""Kills a small story from `init` to the report at each transition of the list and at random; counts differences.

A point is a transition and a kind of call in it; each is cut off at its first and at its last occurrence, by a kill
just before the call and, where it is a write, by one in the middle of it. A random kill strikes at any one of all the
calls that the story makes. After each the story goes on to its end and is compared with one that nobody disturbed:
commits, refs, verdicts, totals, rows, files, `git fsck`, SQLite's integrity check. Prints one line of JSON.

    python benchmarks/crash.py [--random 200] [--only TEXT] [--part points|random|disks]

All of it takes about two hours of processor time; the parts may run beside each other. How far it is stands on standard
error.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent / "tests" / "crash")]

import forked  # noqa: E402
import story  # noqa: E402
import watched  # noqa: E402
from fates import GROWING, FullDisk, KillAt, point_of  # noqa: E402
from watched import Effect, Fate  # noqa: E402

SEED = 20_260_102
PARTS = ("points", "random", "disks")
LAST = list(story.STEPS)[-1]


class Trial(NamedTuple):
    """One disturbance: the number of the effect counted from where the step begins, and what becomes of it."""

    step: str
    number: int
    fate: Fate
    name: str


class Crashes:
    """The story with a snapshot before each step, so that a trial plays only what follows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._context = forked.processes()
        self.effects: dict[str, list[Effect]] = {}
        place = self._fresh("whole")
        for step in story.STEPS:
            shutil.copytree(place, self._snapshot(step), symlinks=True)
            found = self.effects.setdefault(step, [])
            self._tell(place, step, lambda effect, found=found: found.append(effect) or "go on")
        self.whole = story.remains(place)

    def points(self, only: str) -> Iterator[Trial]:
        """Yield the first and the last occurrence of each point."""
        for step, effects in self.effects.items():
            places: dict[tuple[str, str], list[int]] = {}
            for number, effect in enumerate(effects):
                places.setdefault(point_of(effect), []).append(number)
            for (name, op), numbers in places.items():
                for number in sorted({numbers[0], numbers[-1]}):
                    for fate in ("kill", "tear") if op == "write" else ("kill",):
                        if only in name:
                            yield Trial(step, number, fate, f"{name}/{op}")

    def at_random(self, kills: int) -> Iterator[Trial]:
        """Yield kills at random effects of the whole story."""
        random = Random(SEED)
        steps = [(step, number) for step, effects in self.effects.items() for number in range(len(effects))]
        for step, number in random.sample(steps, min(kills, len(steps))):
            yield Trial(step, number, random.choice(("kill", "tear")), "random")

    def full_disks(self, only: str) -> Iterator[Trial]:
        """Yield a full disk for each point that needs room."""
        for step, effects in self.effects.items():
            points = dict.fromkeys(point_of(effect) for effect in effects if effect.op in GROWING)
            yield from (Trial(step, 0, "go on", f"{name}/{op}") for name, op in points if only in name)

    def differences(self, trial: Trial) -> tuple[bool, list[str]]:
        """Play a trial; return whether it struck, and what is not as in the undisturbed story."""
        place = self._from_snapshot(trial.step)
        ended = self._tell(place, LAST, KillAt(trial.number, trial.fate))
        return ended.code is None, self._compare(place)

    def full_disk(self, trial: Trial) -> tuple[int | None, str, list[str]]:
        """Fill the disk at a point; return how the command ended, and what is not as in the undisturbed story."""
        place = self._from_snapshot(trial.step)
        name, _, op = trial.name.rpartition("/")  # a name may have one of its own
        ended = self._tell(place, LAST, FullDisk([(name, op)]))
        return ended.code, ended.said, self._compare(place)

    def _compare(self, place: Path) -> list[str]:
        while not story.is_told(place):
            again = self._tell(place, LAST, lambda _: "go on")
            if again.code != 0:
                return [f"does not go on: {again.said}"]
        left = story.remains(place)
        shutil.rmtree(place)
        return [_named(name, value, self.whole[name]) for name, value in left.items() if value != self.whole[name]]

    def _tell(self, place: Path, last: str, decide: object) -> watched.Ended:
        return watched.watch(self._context, place, story.tell, place, last, decide=decide)  # type: ignore[arg-type]

    def _fresh(self, name: str) -> Path:
        place = self._folder / name / "place"
        place.mkdir(parents=True)
        return place

    def _snapshot(self, step: str) -> Path:
        return self._folder / f"before-{step}"

    def _from_snapshot(self, step: str) -> Path:
        shutil.rmtree(self._folder / "trial", ignore_errors=True)
        place = self._fresh("trial")
        shutil.copytree(self._snapshot(step), place, symlinks=True, dirs_exist_ok=True)
        place.with_name("place.told").write_text(str(list(story.STEPS).index(step)))
        return place


def _named(name: str, left: object, whole: object) -> str:
    """Name a part that differs; of a list also what it has too much and what it lacks."""
    if not isinstance(left, list) or not isinstance(whole, list):
        return name
    more, less = ([one for one in these if one not in those] for these, those in ((left, whole), (whole, left)))
    return f"{name}, too much {more[:3]}, missing {less[:3]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=200, help="random kills")
    parser.add_argument("--only", default="", help="only points whose transition's name contains this")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this; may be repeated")
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        crashes = Crashes(Path(folder))
        print(json.dumps(measure(crashes, options, begun)))


def measure(crashes: Crashes, options: argparse.Namespace, begun: float) -> dict[str, object]:
    parts = options.part or PARTS
    kills = [
        *(crashes.points(options.only) if "points" in parts else ()),
        *(crashes.at_random(options.random) if "random" in parts else ()),
    ]
    disks = [*crashes.full_disks(options.only)] if "disks" in parts else []
    counts = {"points": 0, "random": 0, "struck": 0, "full_disks": 0}
    bad: list[str] = []
    for trial in kills:
        counts["random" if trial.name == "random" else "points"] += 1
        struck, differences = crashes.differences(trial)
        counts["struck"] += struck
        bad += _told(trial, differences)
        _tell_progress(counts, len(kills) + len(disks), len(bad))
    for trial in disks:
        code, said, differences = crashes.full_disk(trial)
        counts["full_disks"] += 1
        if code != 4 or said.count("the disk is full") != 1 or said.count("\n") != 1:
            differences = [f"ended with {code}: {said}", *differences]
        bad += _told(trial, differences)
        _tell_progress(counts, len(kills) + len(disks), len(bad))
    return {
        "effects": sum(map(len, crashes.effects.values())),
        "transitions": len({point_of(effect)[0] for effects in crashes.effects.values() for effect in effects}),
        **counts,
        "different": len(bad),
        "first_differences": bad[:20],
        "seconds": round(time.monotonic() - begun),
    }


def _tell_progress(counts: dict[str, int], wanted: int, bad: int) -> None:
    done = counts["points"] + counts["random"] + counts["full_disks"]
    if done % 20 == 0:
        print(f"{done} of {wanted}, {bad} different", file=sys.stderr, flush=True)


def _told(trial: Trial, differences: list[str]) -> list[str]:
    """Name a bad trial; on standard error at once, for the whole takes long."""
    if not differences:
        return []
    text = f"{trial.step} {trial.name} {trial.number} {trial.fate}: {'; '.join(differences)}"
    print(text, file=sys.stderr, flush=True)
    return [text]


if __name__ == "__main__":
    main()
