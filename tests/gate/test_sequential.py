"""The sequential paired test as a truth table, and what must never change its verdict."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolve.gate.scores import PairedScores, TaskScores, table
from evolve.gate.sequential import GateRule, SequentialPairedTest, StageDecision

TEST = SequentialPairedTest()
ALPHA = 0.005


def passes(tasks: int, *, old: str, new: str, better: int = 0, fold: str = "train") -> PairedScores:
    """Build a table of `tasks` tasks, of which `better` go from `old` to `new` and the rest stay at `old`."""
    return table(
        TaskScores(f"t{i:03}", "f", fold, digits(old), digits(new if i < better else old))  # type: ignore[arg-type]
        for i in range(tasks)
    )


def digits(text: str) -> tuple[float | None, ...]:
    """Read a string of passes (1), failures (0) and voids (x)."""
    return tuple(None if letter == "x" else float(letter) for letter in text)


@pytest.mark.parametrize(
    ("scores", "stage", "outcome", "words"),
    [
        (passes(40, old="00", new="11", better=20), 1, "accept", "at or below"),
        (passes(40, old="00", new="01", better=3), 1, "continue", "lies between accept"),
        (passes(40, old="11", new="00", better=6), 1, "reject", "no evidence of a gain"),
        (passes(40, old="0" * 24, new="0" * 23 + "1", better=4), 8, "cannot_tell", "these were the last trials"),
        (passes(40, old="0" * 24, new="0" * 24), 8, "reject", "these were the last trials"),
        (passes(19, old="00", new="11", better=19), 1, "cannot_tell", "fewer than the 20"),
        (passes(20, old="00", new="11", better=20), 1, "accept", "at or below"),
        (passes(40, old="0x", new="1x", better=40), 1, "cannot_tell", "50.0% of the pairs are void"),
        (passes(40, old="00", new="11", better=40, fold="guard"), 1, "cannot_tell", "no training task"),
    ],
)
def test_truth_table(scores: PairedScores, stage: int, outcome: str, words: str) -> None:
    """Gain, doubt, loss, last trials, few tasks, voids and no training tasks each have their verdict and its reason."""
    decision = TEST.decide(scores, stage, ALPHA)
    assert decision.outcome == outcome
    assert words in " ".join(decision.reasons)
    assert all(reason.endswith(".") for reason in decision.reasons)


def test_five_percent_of_voids_are_borne() -> None:
    """Two void pairs of forty leave the verdict to the test; three do not."""
    rows = [TaskScores(f"t{i:02}", "f", "train", digits("0"), digits("1")) for i in range(40)]
    void = [TaskScores(f"t{i:02}", "f", "train", (None,), (1.0,)) for i in range(3)]
    assert TEST.decide(table(void[:2] + rows[2:]), 0, ALPHA).outcome == "accept"
    assert TEST.decide(table(void + rows[3:]), 0, ALPHA).outcome == "cannot_tell"


def test_greedy_model_has_one_honest_stage() -> None:
    """With one trial the test is McNemar's at the whole alpha: eight wins of eight pass .005, seven do not."""
    greedy = SequentialPairedTest(max_trials=1)
    assert greedy.stages == (1,)
    assert greedy.decide(passes(40, old="0", new="1", better=8), 0, ALPHA).outcome == "accept"
    assert greedy.decide(passes(40, old="0", new="1", better=6), 0, ALPHA).outcome == "cannot_tell"
    assert greedy.allocate(passes(40, old="0", new="1", better=8), 0) == {}


def test_stages_are_cut_at_the_trials_there_are() -> None:
    """The last stage is the most trials that may be had."""
    assert SequentialPairedTest(max_trials=5).stages == (1, 2, 3, 4, 5)
    assert SequentialPairedTest(max_trials=99).stages == TEST.stages
    with pytest.raises(ValueError, match="below 1"):
        SequentialPairedTest(max_trials=0)
    with pytest.raises(ValueError, match="not one of 9"):
        TEST.decide(passes(40, old="0", new="1"), 9, ALPHA)


def test_trials_go_where_they_inform() -> None:
    """A task that gave one score in all pairs gets half a step; guard tasks get nothing before an accept."""
    scores = table(
        [
            TaskScores("rests", "f", "train", digits("1111"), digits("1111")),
            TaskScores("open", "f", "train", digits("1101"), digits("1111")),
            TaskScores("voids", "f", "train", digits("xxxx"), digits("1111")),
            TaskScores("guard", "f", "guard", digits("1101"), digits("1111")),
        ]
    )
    assert TEST.allocate(scores, 3) == {"rests": 1, "open": 2, "voids": 2}


def test_multi_valued_scores_are_tested_exactly() -> None:
    """Partial credit counts by its size: many small losses do not outvote few large gains, nor the reverse."""
    gains = [TaskScores(f"g{i:02}", "f", "train", (0.0,), (1.0,)) for i in range(24)]
    losses = [TaskScores(f"l{i:02}", "f", "train", (0.5,), (0.4,)) for i in range(28)]
    assert TEST.decide(table(gains + losses), 0, ALPHA).outcome == "accept"
    assert TEST.decide(table(gains[:3] + losses), 0, ALPHA).outcome != "accept"


def test_flipping_families_is_stricter_than_flipping_pairs() -> None:
    """Forty copies of one task are one piece of evidence when families are flipped."""
    scores = passes(40, old="00", new="11", better=40)
    assert TEST.decide(scores, 1, ALPHA).outcome == "accept"
    assert SequentialPairedTest(unit="family").decide(scores, 1, ALPHA).outcome != "accept"


score = st.sampled_from([0.0, 0.25, 0.5, 1.0, None])


@st.composite
def tables(draw: st.DrawFn) -> tuple[PairedScores, int]:
    stage = draw(st.integers(0, 3))
    trials = TEST.stages[stage]
    arm = st.lists(score, min_size=trials, max_size=trials).map(tuple)
    rows = draw(st.lists(st.tuples(arm, arm, st.sampled_from("abc")), min_size=1, max_size=24))
    return table(TaskScores(f"t{i:02}", f, "train", old, new) for i, (old, new, f) in enumerate(rows)), stage


@settings(max_examples=40)
@given(tables(), st.randoms(use_true_random=False))
def test_order_and_labels_never_change_a_verdict(case: tuple[PairedScores, int], rng: random.Random) -> None:
    """Shuffled tasks, renamed tasks and families, and shuffled trials give the same decision, numbers and all."""
    scores, stage = case
    families = dict(zip("abc", rng.sample("xyz", 3), strict=True))
    names = rng.sample(range(1000), len(scores.tasks))
    rows = []
    for name, row in zip(names, scores.tasks, strict=True):
        pairs = list(zip(row.incumbent, row.candidate, strict=True))
        rng.shuffle(pairs)
        old, new = zip(*pairs, strict=True)
        rows.append(TaskScores(f"n{name}", families[row.family], row.fold, old, new))
    rng.shuffle(rows)
    assert TEST.decide(table(rows), stage, ALPHA) == TEST.decide(scores, stage, ALPHA)


@settings(max_examples=40)
@given(tables())
def test_swapped_arms_mirror_the_decision(case: tuple[PairedScores, int]) -> None:
    """Exchanging the arms negates the effect, mirrors p, and never turns an accept into an accept."""
    scores, stage = case
    one, other = (TEST.decide(arms, stage, ALPHA) for arms in (scores, scores.swapped()))
    assert other.numbers["effect"] == pytest.approx(-one.numbers["effect"])
    assert other.numbers["p"] == pytest.approx(1 - one.numbers["p"], abs=1e-9)
    assert {one.outcome, other.outcome} != {"accept"}
    assert TEST.allocate(scores, stage) == TEST.allocate(scores.swapped(), stage)


def walk(rule: GateRule, score_of: dict[tuple[str, int], tuple[float, float]], restart: bool) -> StageDecision:
    """Run a gate to its end on given scores; with `restart` everything but the table is forgotten at each stage."""
    done = {name: rule.stages[0] for name, trial in score_of if trial == 0}
    for stage in range(len(rule.stages)):
        if restart:
            rule = SequentialPairedTest()
        rows = []
        for name, count in done.items():
            old, new = zip(*(score_of[name, trial] for trial in range(count)), strict=True)
            rows.append(TaskScores(name, "f", "train", old, new))
        decision = rule.decide(table(rows), stage, ALPHA)
        if decision.outcome != "continue":
            return decision
        done = {name: count + rule.allocate(table(rows), stage)[name] for name, count in done.items()}
    raise AssertionError("the last stage must not continue")


@pytest.mark.parametrize("seed", range(6))
def test_resumed_gate_equals_an_unbroken_one(seed: int) -> None:
    """A gate that forgets everything but the scores ends with the same decision, and it always ends."""
    rng = random.Random(seed)
    rates = [rng.random() for _ in range(30)]
    scores = {
        (f"t{i}", trial): (float(rng.random() < rate), float(rng.random() < rate + 0.04 * seed))
        for i, rate in enumerate(rates)
        for trial in range(24)
    }
    assert walk(SequentialPairedTest(), scores, restart=True) == walk(SequentialPairedTest(), scores, restart=False)
