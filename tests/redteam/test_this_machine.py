"""`evolve doctor --redteam`: the fast attacks on this machine, and what they say where a defence is missing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from redteam.cases import case, cases

from evolve.cli.exits import run_command
from evolve.cli.redteam_text import redteam_text
from evolve.harness.worker import Layers, WorkerPool
from evolve.proposers.sandbox import Enclosure
from evolve.redteam import agents, onlooker, rule_code
from evolve.redteam.agents import attack_with_an_agent
from evolve.redteam.intake import attack_export, attack_read_back
from evolve.redteam.outcome import Outcome
from evolve.redteam.rules import attack_with_rules
from evolve.redteam.world import World
from evolve.repository import Collected

LIMITED = {"writes a file", "takes 2 GiB of memory", "loops longer than a rule may"}
"""What resource limits alone hold; for an ordinary user they hold processes and threads too."""


def verdicts(outcomes: Sequence[Outcome]) -> dict[str, str]:
    return {outcome.attack: outcome.verdict for outcome in outcomes}


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel layers are those of Linux")
def test_every_attack_of_a_rule_is_held_with_the_kernel_layers_and_seen_without() -> None:
    """With all layers nothing gets through; without them all but what limits hold is reported as not held."""

    async def without() -> list[Outcome]:
        async with WorkerPool(minimum_tier="rlimits", layers=Layers.NONE, call_timeout_s=0.2) as pool:
            return await attack_with_rules(pool)

    told = asyncio.run(attack_with_rules())
    hidden = {"reads evolve's memory"} if os.geteuid() != 0 else set()  # where a child may not trace its parent anyway
    assert {name for name, verdict in verdicts(told).items() if verdict != "held"} <= hidden
    by_limits = {"starts a process", "starts a thread", "starts a shell"} if os.geteuid() != 0 else set()
    open_now = {name for name, verdict in verdicts(asyncio.run(without())).items() if verdict == "not held"}
    assert open_now >= {attack.attack for attack in rule_code.ATTACKS} - LIMITED - by_limits - hidden


@case("18.links")
def test_the_read_back_holds_and_a_plain_one_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way in is refused; a read-back that takes what it finds is reported as not held."""
    assert set(verdicts(attack_read_back(tmp_path / "a")).values()) == {"held"}
    monkeypatch.setattr("evolve.redteam.intake.collect", lambda folder: Collected({}, []))  # refuses nothing
    assert set(verdicts(attack_read_back(tmp_path / "b")).values()) == {"not held"}


@case("20.repository")
def test_an_export_holds_nothing_of_the_history_and_a_clone_is_seen(
    world: World, shut_in: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stash, amended commits, notes, tags and branches stay at home; a copy with its history is reported."""
    assert set(verdicts(attack_export(world, tmp_path / "copy")).values()) == {"held"}
    monkeypatch.setattr("evolve.redteam.intake.start_throwaway_history", lambda copy: _with_history(world, copy))
    found = verdicts(attack_export(world, tmp_path / "clone"))
    assert {name.rpartition(" ")[2] for name, verdict in found.items() if verdict == "not held"} >= {"stash", "amended"}


def _with_history(world: World, copy: Path) -> None:
    subprocess.run(["cp", "-r", str(world.top / "repository" / ".git"), str(copy / ".git")], check=True)


def test_an_agent_outside_any_sandbox_is_told_as_unprotected(world: World, shut_in: object, tmp_path: Path) -> None:
    """Where no sandbox is found nothing is called held, and the reason is given once."""
    told = attack_with_an_agent(world, {"PATH": str(tmp_path)})
    assert {outcome.verdict for outcome in told} == {"not applicable"}
    assert "UNPROTECTED" in redteam_text(told)
    assert len(told) == len(agents.SEARCHES) + len(agents.ACTS)


@case("03.host")
@pytest.mark.skipif(sys.platform != "linux", reason="private memory is a thing of Linux")
def test_a_child_cannot_look_into_evolve() -> None:
    """A child of an ordinary user's evolve reads its variables only while it does not object; root is told so."""
    told = {outcome.attack: outcome for outcome in onlooker.attack_from_a_child()}
    if os.geteuid() == 0:  # test_ordinary_user.py plays this as nobody
        assert {outcome.verdict for outcome in told.values()} == {"not applicable"}
        return
    variables = told["a child process reads evolve's variables"]
    assert (variables.verdict, variables.tier) == ("held", "private memory")
    assert told["a child process reads evolve's memory"].verdict != "not held"


def test_the_doctor_prints_all_of_it_and_ends_with_2_where_something_got_through(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line for each attack with its tier, a sum, and an exit code that a script can use."""

    def outcome(verdict: str) -> Outcome:
        return Outcome(case="01.files", party="rule code", attack="reads", tier="seccomp", verdict=verdict)

    for found, code in ((["held", "not applicable"], 0), (["held", "not held"], 2)):
        monkeypatch.setattr(
            "evolve.redteam.suite.attack_this_machine", lambda environ, found=found: [outcome(v) for v in found]
        )
        assert run_command(["doctor", "--redteam"]) == code
        printed = capsys.readouterr().out
        assert f"2 attacks: 1 held, {found.count('not held')} not held" in printed
    assert "NOT HELD" in printed
    assert run_command(["doctor", "--redteam", "--json"]) == 2
    assert '"verdict": "not held"' in capsys.readouterr().out


def test_each_attack_is_one_of_the_list(enclosure: Enclosure) -> None:
    """What the doctor tries has a row in the table of attacks."""
    tried = {attack.case for attack in (*rule_code.ATTACKS, *onlooker.ATTACKS, *agents.SEARCHES)}
    assert (tried | {case for case, _ in agents.ACTS}) - set(cases()) == set()
