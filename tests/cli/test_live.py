"""What a run says of its episodes while it goes on."""

import pytest
from accepted import add_accepted
from handmade import episode

from evolve.cli.live import Lines
from evolve.progress import Finished, Started


def last_line(capsys, purpose: str, *, reused: int, solved: tuple[bool | None, ...]) -> str:
    """Return the line at the end of a batch; None is an episode that could not be played."""
    lines = Lines()
    lines.report(Started(purpose, reused + len(solved), reused))
    for is_solved in solved:
        played = episode(success=bool(is_solved))
        broken = {"status": "error", "score": None, "error": "away"} if is_solved is None else {}
        lines.report(Finished(purpose, played.model_copy(update=broken)))
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("purpose", "reused", "solved", "words"),
    [
        ("baseline", 0, (True, False), "baseline 2/2 episodes · 1 of 2 solved · "),
        ("baseline", 0, (True, None, False), "baseline 3/3 episodes · 1 of 2 solved · "),
        ("baseline", 0, (None, None), "baseline 2/2 episodes · 0 steps · 0 tokens · 2 errors · "),
        (
            "paired_test",
            3,
            (True, False),
            "paired_test 5/5 episodes, 3 of them on record · 1 of the 2 played now solved, both arms together · ",
        ),
    ],
)
def test_a_line_says_what_its_numbers_are_of(capsys, purpose, reused, solved, words):
    """What is on record is told apart from what is played now; an episode that could not be played is not unsolved."""
    assert last_line(capsys, purpose, reused=reused, solved=solved).startswith(words)


def test_an_evaluation_says_that_it_counts_both_arms(evolve, workspace):
    """Base and frozen are played in turn, so the number solved is not that of either."""
    add_accepted(workspace)
    config = ("-C", workspace, "--config", workspace / "my.toml")
    evolve("accept", "1", "-C", workspace)
    evolve("freeze", "household", "--name", "v1", *config)
    assert "evaluation 6/6 episodes · 0 of 6 solved, both arms together" in evolve("evaluate", "v1", *config).err
