"""The simulated world: its effects have the promised size, and playing tapes equals the real test."""

import numpy as np
import pytest

from evolve.gate.rules import COMMON_RULES
from evolve.gate.sequential import SequentialPairedTest
from evolve.gate.signflip import binomial_midp
from evolve.gate.simulate import Effect, drive, mended, midp_table, pass_rates, play, raised, shifted, table_of, tape


@pytest.mark.parametrize("effect", [shifted, raised, mended])
def test_effect_has_its_size(effect: Effect) -> None:
    """Each way of spreading a gain over tasks moves the mean pass rate by exactly that gain and harms no task."""
    rng = np.random.default_rng(1)
    rates = pass_rates(rng, 50, 40)
    moved = effect(rates, 0.10, rng)
    assert (moved - rates).mean(axis=1) == pytest.approx(0.10)
    assert np.all(moved >= rates)


def test_pass_rates_have_the_documented_mix() -> None:
    """Of 40 tasks 16 are easy, 8 hard, 16 between."""
    rates = pass_rates(np.random.default_rng(1), 3, 40)
    assert ((rates == 0.95).sum(axis=1) == 16).all()
    assert ((rates == 0.05).sum(axis=1) == 8).all()


def test_table_of_midp_is_the_exact_one() -> None:
    """The table by logarithms agrees with whole-number arithmetic."""
    table = midp_table(60)
    for pairs in (0, 1, 7, 60):
        for wins in range(pairs + 1):
            assert table[pairs, wins] == pytest.approx(binomial_midp(wins, pairs - wins), rel=1e-9)


@pytest.mark.parametrize("gain", [0.0, 0.10])
def test_playing_tapes_equals_the_real_test(gain: float) -> None:
    """On 25 runs the test on arrays and the real one accept the same runs after the same trials of each task."""
    rng = np.random.default_rng(8)
    rates = pass_rates(rng, 25, 30)
    old, new = tape(rng, rates, 24), tape(rng, shifted(rates, gain, rng), 24)
    played = play(SequentialPairedTest(), old, new, 0.05)
    for run in range(25):
        decision, seen = drive(SequentialPairedTest(), table_of(old[run], new[run]), 0.05)
        assert (decision.outcome == "accept") == played.accepted[run]
        assert [len(task.incumbent) for task in seen.tasks] == played.done[run].tolist()


def test_common_rules_by_hand() -> None:
    """On six differences worked out by hand each common rule says what its name promises."""
    differences = np.array([[0.5, 0.5, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0], [0.5, -0.5, 0, 0, 0, 0], [-1, 0, 0, 0, 0, 0]])
    verdicts = {name: rule(differences).tolist() for name, rule in COMMON_RULES.items()}
    assert verdicts == {
        "mean > incumbent's": [True, True, False, False],
        "mean >= incumbent's": [True, True, True, False],
        "mean + 1 SE": [True, True, False, False],
        "mean + 2 SE": [False, True, False, False],
        "sign-flip p < .05": [False, True, False, False],
    }
