"""Which sandbox holds is measured and told: a leaking one is not used, a missing one never passed over in silence."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from redteam.cases import case

from evolve.canaries import Canaries
from evolve.cli.candidate_text import _sandbox_lines
from evolve.config import load_config
from evolve.doctor.agents import proposer_sandbox
from evolve.doctor.refusals import refusals
from evolve.errors import ConfigError
from evolve.proposers.command import CommandProposer
from evolve.proposers.create import create_proposer
from evolve.proposers.sandbox import Enclosure, Room, choose_sandbox, find_sandbox
from evolve.proposers.sandbox.probe import what_is_wrong
from evolve.proposers.sandbox.seatbelt import Seatbelt
from evolve.protocols import Assignment
from evolve.workspace import Workspace

COMMAND = ("proposer.kind=command", "proposer.agent=codex")


class Pretender:
    """A sandbox that shuts nobody in."""

    name = "pretender"
    has_own_loopback = True

    def wrap(self, command: Sequence[str], room: Room) -> list[str]:
        return list(command)


@case("x.tier")
def test_the_self_test_sees_what_a_pretender_lets_through(enclosure: Enclosure) -> None:
    """Files, writing, other processes and the network are each named; a sandbox that holds is silent."""
    wrong = what_is_wrong(Pretender())
    for seen in ("files outside", "for writing", "other processes", "the network"):
        assert seen in wrong
    assert what_is_wrong(enclosure.sandbox) == ""  # the control


@case("x.tier")
def test_a_sandbox_that_does_not_start_is_none(tmp_path: Path) -> None:
    """A bwrap that fails, as where user namespaces are forbidden, is told with its own last words."""
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'No permissions to create a namespace' >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    found = find_sandbox({"PATH": str(tmp_path)})
    assert found.sandbox is None
    assert "No permissions to create a namespace" in found.reason


def made(mode: str, path: str, top: Path) -> tuple[CommandProposer, list[str]]:
    """Make the proposer of a configuration; return it with what was warned of."""
    warned: list[str] = []
    proposer = create_proposer(
        Workspace(top),
        load_config(None, assignments=(*COMMAND, f"proposer.sandbox={mode}")).config,
        environ={"PATH": path, "HOME": str(top)},
        replay=lambda _: "",
        canaries=Canaries({}),
        warn=warned.append,
    )
    assert isinstance(proposer, CommandProposer)
    return proposer, warned


@case("x.tier")
def test_a_required_sandbox_is_not_done_without(tmp_path: Path) -> None:
    """Where none holds, `required` refuses to begin, `auto` and `off` go on and say UNPROTECTED."""
    with pytest.raises(ConfigError, match=r"required.*not on PATH"):
        made("required", str(tmp_path), tmp_path)
    for mode in ("auto", "off"):
        proposer, (told,) = made(mode, str(tmp_path), tmp_path)
        assert told.startswith("UNPROTECTED")
        assert proposer.sandbox == "none"


@case("x.tier")
def test_where_one_holds_nothing_is_warned_of(enclosure: Enclosure, tmp_path: Path) -> None:
    """`auto` and `required` use it, and it stands in what the record will say."""
    for mode in ("auto", "required"):
        proposer, warned = made(mode, os.environ["PATH"], tmp_path)
        assert proposer.sandbox == enclosure.sandbox.name == "bubblewrap"
        assert warned == []


@case("20.data")
def test_data_that_only_a_variable_names_is_hidden(enclosure: Enclosure, tmp_path: Path) -> None:
    """Where TAU2_DATA_DIR lies in a folder that the agent may read, the agent finds it empty."""
    (tmp_path / "shared" / "data").mkdir(parents=True)
    (tmp_path / "shared" / "data" / "answers.json").touch()
    rows = tmp_path / "agents.toml"
    shared = json.dumps(str(tmp_path / "shared"))
    rows.write_text(
        f'[agents.lister]\ntitle = "Lister"\nprogram = "find"\ninstall = ""\nargv = [{shared}]\nreadable = [{shared}]\n'
    )
    (tmp_path / "repository").mkdir()
    listed = {}
    for named in ("", str(tmp_path / "shared" / "data")):
        proposer = create_proposer(
            Workspace(tmp_path / "repository"),
            load_config(
                None, assignments=("proposer.kind=command", "proposer.agent=lister", f"proposer.agents_file={rows}")
            ).config,
            environ={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "TAU2_DATA_DIR": named},
            replay=lambda _: "",
            canaries=Canaries({}),
        )
        room = tmp_path / f"room{len(listed)}"
        for folder in ("workspace", "evidence"):
            (room / folder).mkdir(parents=True)
        (room / "workspace" / "contract.toml").touch()
        proposed = asyncio.run(
            proposer.propose(Assignment("desk", 1, room / "workspace", room / "evidence", timeout_s=60))
        )
        assert proposed.transcript is not None
        listed[named] = "answers.json" in proposed.transcript.read_text("utf-8")
    assert list(listed.values()) == [True, False]


@case("x.tier")
def test_review_and_doctor_say_it(enclosure: Enclosure, tmp_path: Path) -> None:
    """A candidate of an unprotected agent is marked where a person decides on it; the doctor names what mends it."""
    assert _sandbox_lines("none")[0].strip().startswith("UNPROTECTED")
    assert _sandbox_lines("bubblewrap") == ["  the coding agent was shut in: bubblewrap"]
    assert _sandbox_lines("") == []
    config = load_config(None, assignments=(*COMMAND, "proposer.sandbox=required")).config
    missing = proposer_sandbox(config, {"PATH": str(tmp_path)})
    assert missing.name in {one.about for one in refusals(Workspace(tmp_path), config, {"PATH": str(tmp_path)})}
    assert missing.detail.startswith("UNPROTECTED")
    assert "bubblewrap" in missing.mend
    assert proposer_sandbox(config, os.environ).status == "ok"  # the control
    assert missing.name not in {one.about for one in refusals(Workspace(tmp_path), config, os.environ)}


def test_off_does_not_look() -> None:
    """Switched off, nothing is started to look for a sandbox."""
    assert choose_sandbox("off", {"PATH": "/nowhere"}).reason == "switched off by proposer.sandbox"


def test_the_profile_of_macos_names_the_room(tmp_path: Path) -> None:
    """Not run here: the rules deny by default, hide what is hidden, and open the room last."""
    room = Room(tmp_path / "w", (tmp_path / "w",), hidden=(tmp_path,), restored=(tmp_path / "evidence",))
    program, flag, profile, *command = Seatbelt().wrap(["agent", "x"], room)
    assert (program, flag, command) == ("/usr/bin/sandbox-exec", "-p", ["agent", "x"])
    rules = profile.split("\n")
    shut = rules.index(f"(deny file-read* file-write* (subpath {json.dumps(str(tmp_path))}))")
    opened = rules.index(f"(allow file-read* file-write* (subpath {json.dumps(str(tmp_path / 'w'))}))")
    assert "(deny default)" in rules[:2]
    assert shut < opened
    assert '(allow network-outbound (remote ip "localhost:*"))' in rules
