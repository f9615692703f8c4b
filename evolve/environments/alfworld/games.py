"""Reads games, from alfworld-download's tree or from compact files that give the same games byte for byte.

A compact file has one game a line; domain and grammar, which all games share but for the task sentence, stand in
files of their own.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from glob import iglob
from io import BytesIO
from pathlib import Path

import orjson

from evolve.environments.alfworld.benchmark import DOMAIN, GAME_FILE, GAMES, GRAMMAR, TREE, compact
from evolve.environments.data import BenchmarkData
from evolve.errors import ConfigError, EnvironmentBroken

TASK_SENTENCE = re.compile(rb'Your task is to: (.+?)\\"')
SOLVABLE = b'"solvable": true'
PROBLEM = b', "pddl_problem": '


@dataclass(frozen=True, slots=True)
class Game:
    """One official game. `game_id` is its official path: SPLIT/KIND/TRIAL."""

    game_id: str
    text: str
    sha256: str
    unpack: Callable[[], bytes] = field(repr=False, compare=False)

    @property
    def kind(self) -> str:
        """Chore, things and room, as in `pick_heat_then_place_in_recep-Mug-None-SideTable-21`."""
        return self.game_id.split("/")[1]

    @property
    def family(self) -> str:
        """One of the six official task types."""
        return self.kind.partition("-")[0]

    def content(self) -> bytes:
        """Return the game file.

        Raises:
            EnvironmentBroken: it is not there any more, or not as it was when it was listed.
        """
        try:
            content = self.unpack()
        except OSError as error:
            raise EnvironmentBroken(f"the game {self.game_id} cannot be read: {error}") from error
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise EnvironmentBroken(f"the game {self.game_id} is not what it was when it was listed (SHA-256 differs)")
        return content


def has_games(data: BenchmarkData, split: str) -> bool:
    """Tell whether an official split is there, in either form; no game is read."""
    return data.has(compact(split)) or any(iglob(GAMES, root_dir=_tree(data, split)))


def read_games(data: BenchmarkData, split: str) -> Iterator[Game]:
    """Yield the games of an official split that can be solved, in the order of their ids.

    Raises:
        ConfigError: a file is missing or not the one that was pinned.
    """
    if data.has(compact(split)):
        return _read_compact(data, split)
    return _read_tree(_tree(data, split))


def _tree(data: BenchmarkData, split: str) -> Path:
    return data.folder / TREE / split


def _read_tree(folder: Path) -> Iterator[Game]:
    """Read each file once: its digest is part of what the environment is."""
    for path in sorted(folder.glob(GAMES)):
        content = path.read_bytes()
        sentence = TASK_SENTENCE.search(content)
        if sentence is None or SOLVABLE not in content:
            continue  # upstream leaves unsolvable games out as well
        yield Game(
            game_id="/".join(path.parent.parts[-3:]),
            text=sentence[1].decode(),
            sha256=hashlib.sha256(content).hexdigest(),
            unpack=path.read_bytes,
        )


def _read_compact(data: BenchmarkData, split: str) -> Iterator[Game]:
    domain, grammar = data.read(DOMAIN).decode(), data.read(GRAMMAR).decode()
    name = compact(split)
    try:
        with lzma.open(BytesIO(data.read(name))) as lines:  # a line at a time: all of `train` are 183 MiB
            for line in lines:
                head, _, _ = line.partition(PROBLEM)  # the rest is long and only read when the game is played
                row = orjson.loads(head + b"}")
                yield Game(
                    game_id=row["game"].removesuffix(f"/{GAME_FILE}"),
                    text=row["task"],
                    sha256=row["sha256"],
                    unpack=partial(_rebuild, line, domain, grammar),
                )
    except (lzma.LZMAError, EOFError, ValueError, LookupError, TypeError) as error:  # the held-out file is not pinned
        raise ConfigError(f"{data.find(name)} does not hold games in compact form: {error!r}") from error


def _rebuild(line: bytes, domain: str, grammar: str) -> bytes:
    """Write a game as upstream's generator does: these keys in this order, the default separators of `json`."""
    row = orjson.loads(line)
    game = {
        "pddl_domain": domain,
        "grammar": grammar.replace("{TASK}", row["task"]),
        "pddl_problem": row["pddl_problem"],
        "solvable": True,
        "walkthrough": row["walkthrough"],
    }
    return json.dumps(game).encode()
