"""An episode as a story: firings stand where they happened, with what they changed."""

from evolve.cli.story import story
from evolve.records import (
    Call,
    Episode,
    Firing,
    Layer,
    Observation,
    Opening,
    ProposedCall,
    Score,
    Split,
    Step,
    Strength,
)


def firing(**values) -> Firing:
    return Firing(unit="action.spell", layer=Layer.ACTION, strength=Strength.REWRITE, step=0, **values)


def episode(step: Step) -> Episode:
    return Episode(
        episode_id="e1",
        task_id="t1",
        environment="toy",
        family="f",
        split=Split.TRAIN,
        trial=0,
        model="m",
        harness="h",
        status="done",
        stop="finished",
        opening=Opening(system="Be good.", user="Open the door."),
        steps=(step,),
        score=Score(value=1.0, success=True, version="1"),
    )


def step(**values) -> Step:
    proposed = ProposedCall(call_id="c", tool="act", arguments_text='{"a": "opn"}', arguments={"a": "opn"})
    return Step(index=0, turn=0, text="I open it.", proposed=proposed, **values)


def test_rewrite_shows_what_was_written_what_was_run_and_the_unit_between():
    """A rewritten call appears as the model wrote it, then the firing with before and after, then what was run."""
    told = story(
        episode(
            step(
                executed=Call(tool="act", arguments={"a": "open"}),
                observation=Observation(text="The door is open.", done=True),
                firings=(firing(effect="rewrite", before='act {"a": "opn"}', after='act {"a": "open"}'),),
                note="Two steps left.",
            )
        )
    )
    order = [
        "user: Open the door.",
        "model says: I open it.",
        'model calls: act {"a": "opn"}',
        "harness: action.spell (action, rewrite) rewrite",
        '→ act {"a": "open"}',
        'was run: act {"a": "open"}',
        "answer: The door is open.",
        "harness adds: Two steps left.",
        "Score 1: solved",
    ]
    places = [told.index(part) for part in order]
    assert places == sorted(places)


def test_blocked_call_says_so():
    """A blocked step is marked and nothing was run."""
    told = story(episode(step(observation=Observation(text="Not now."), is_blocked=True)))
    assert "Step 0 (blocked)" in told
    assert "was run" not in told


def test_long_passages_are_cut_short_unless_asked_for():
    """A long observation is cut with a remark; --full gives all of it."""
    long = episode(step(observation=Observation(text="x" * 2000)))
    assert "1400 more characters" in story(long)
    assert "x" * 2000 in story(long, is_full=True)
