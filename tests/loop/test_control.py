"""The A/A control: the incumbent in both arms, before anything is decided."""

from __future__ import annotations

from pathlib import Path

import gate_story
import pytest
import small_run
from gate_story import judge, note, propose, sampled

from evolve.errors import ControlFailed, ProviderError
from evolve.loop.numbering import CONTROL_TRIAL
from evolve.protocols import ModelRequest
from evolve.records import Completion
from evolve.store import Purpose, RunStatus
from evolve.workspace import Workspace


def second_arm(request: ModelRequest) -> bool:
    """Tell whether a request belongs to the first attempt at a control's second arm."""
    return CONTROL_TRIAL <= int(request.stream.split("/")[1]) < CONTROL_TRIAL + 1002


def test_a_sampled_incumbent_is_measured_against_itself_before_the_first_test(waiting: Workspace) -> None:
    """The control is on record with its noise; one of its arms serves the paired test again."""
    propose(waiting, {"contract.toml": note("Be calm.")})
    judge(waiting, model=sampled())
    with gate_story.opened(waiting) as ledger:
        (check,) = ledger.self_checks(gate_story.RUN)
        noise = {e.episode_id for e in ledger.episodes(gate_story.RUN, purpose=Purpose.NOISE)}
        tested = {e.episode_id for e in ledger.episodes(gate_story.RUN, arm="", purpose=Purpose.PAIRED_TEST)}
    assert (check.number, check.attempt, check.is_passed, check.pairs) == (1, 1, True, 40)
    assert 0.05 < check.pair_variance < 0.5
    assert len(noise) == 80
    assert len(noise & tested) >= 20


def test_an_incumbent_that_differs_from_itself_stops_the_run(waiting: Workspace) -> None:
    """Nothing is decided, the run says why, ends with the code of a failing world, and a resume measures anew."""
    propose(waiting, {"contract.toml": note("BRIGHT")})

    def drifting(request: ModelRequest) -> Completion:
        return gate_story.LOOK if second_arm(request) else gate_story.moody(request)

    with pytest.raises(ControlFailed, match="differs from itself by -") as stopped:
        judge(waiting, model=sampled(drifting))
    assert stopped.value.exit_code == 4
    with gate_story.opened(waiting) as ledger:
        assert ledger.run(gate_story.RUN).status is RunStatus.FAILED
        assert ledger.stages(f"{gate_story.RUN}-01") == []
    propose(waiting, {})
    judge(waiting, model=sampled())
    with gate_story.opened(waiting) as ledger:
        assert [(c.attempt, c.is_passed) for c in ledger.self_checks(gate_story.RUN)] == [(1, False), (2, True)]


def test_voids_fail_the_control(waiting: Workspace) -> None:
    """An endpoint that loses more than one pair in twenty fails the control, before it can spoil a verdict."""
    propose(waiting, {"contract.toml": note("BRIGHT")})

    def flaky(request: ModelRequest) -> Completion:
        if second_arm(request) and gate_story.draw(request.stream) < 0.2:
            raise ProviderError("the endpoint is away")
        return gate_story.moody(request)

    with pytest.raises(ControlFailed, match="of the pairs are void"):
        judge(waiting, "rollout.error_share=1.0", model=sampled(flaky))


def test_a_greedy_model_is_not_measured_and_that_is_said(tmp_path: Path) -> None:
    """The control of a greedy model asks nothing and says why; it is repeated every ten candidates."""
    settings = ("iterations=11",)
    workspace = gate_story.begin(tmp_path, *settings)
    notes = small_run.Notes()
    for number in range(1, 12):
        propose(workspace, {"contract.toml": note("Be calm.")}, number, pattern_id="none")
        small_run.run(workspace, *gate_story.BY_HAND, *settings, resume="", progress=notes)
    with gate_story.opened(workspace) as ledger:
        checks = ledger.self_checks(gate_story.RUN)
        assert ledger.episodes(gate_story.RUN, purpose=Purpose.NOISE) == []
    assert [(check.number, check.pairs, check.is_passed) for check in checks] == [(1, 0, True), (11, 0, True)]
    said = [event.text for event in notes.events if hasattr(event, "text")]
    assert sum("The model is greedy" in text for text in said) == 2
