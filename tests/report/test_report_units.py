"""How firings become counts of helped and hurt episodes."""

import gc
import weakref

import handmade

from evolve.records import Episode, Fault, Firing, Layer, Strength
from evolve.report.units import unit_lines


def played(task: str, *, harness: str, success: bool, units: tuple[str, ...] = (), faults: tuple[str, ...] = ()):
    """Return an episode in which these units fired and these misbehaved."""
    firings = [Firing(unit=unit, layer=Layer.ACTION, strength=Strength.BLOCK, step=0, effect="block") for unit in units]
    made = handmade.episode(handmade.act("look"), task=task, success=success)
    step = made.steps[0].model_copy(update={"firings": tuple(firings)})
    broken = tuple(Fault(unit=unit, step=0, kind="raised", message="") for unit in faults)
    name = f"{task}-{harness}"
    changes = {"harness": harness, "episode_id": name, "steps": (step,), "faults": broken}
    return Episode.model_validate(made.model_copy(update=changes).model_dump())


def test_helped_and_hurt_are_counted_against_the_same_task_without_the_unit():
    """One task turned to success, one to failure, one stayed as it was."""
    old = [played(task, harness="old", success=task != "a") for task in "abc"]
    new = [played(task, harness="new", success=task != "b", units=("action.x",)) for task in "abc"]
    (line,) = unit_lines([*old, *new], {"new": "old"})
    assert (line.episodes, line.successes, line.helped, line.hurt) == (3, 2, 1, 1)


def test_a_unit_that_the_incumbent_has_too_gets_no_credit_for_the_next_patch():
    """What changed between two harnesses that both have the unit is not the unit's doing."""
    old = played("a", harness="old", success=False, units=("action.x",))
    new = played("a", harness="new", success=True, units=("action.x", "action.y"))
    x, y = unit_lines([old, new], {"new": "old"})
    assert (x.unit, x.episodes, x.helped) == ("action.x", 2, 0)
    assert (y.unit, y.episodes, y.helped) == ("action.y", 1, 1)


def test_without_a_rival_nothing_is_helped_or_hurt():
    """Episodes of a harness that was measured against nothing count as fired, no more."""
    (line,) = unit_lines([played("a", harness="new", success=True, units=("action.x",))], {})
    assert (line.episodes, line.successes, line.helped, line.hurt) == (1, 1, 0, 0)


def test_an_episode_given_twice_counts_once():
    """Ledgers link one episode to several arms."""
    one = played("a", harness="new", success=True, units=("action.x", "action.x"))
    (line,) = unit_lines([one, one], {})
    assert (line.episodes, line.firings) == (1, 2)


def test_faults_are_counted_by_episode():
    """A unit that fired and misbehaved in the same episode has one faulty episode."""
    (line,) = unit_lines([played("a", harness="n", success=False, units=("action.x",), faults=("action.x",) * 2)], {})
    assert line.faults == 1


def test_no_episode_is_kept_once_it_was_counted():
    """A run's traces together may be larger than memory: each is gone before the next is read."""

    def read():
        for number in range(3):
            one = played(f"task-{number}", harness="new", success=True, units=("action.x",))
            gone.append(weakref.ref(one))
            yield one
            del one
            gc.collect()
            assert number == 0 or gone[number - 1]() is None

    gone: list[weakref.ref] = []
    assert unit_lines(read(), {})[0].episodes == 3
