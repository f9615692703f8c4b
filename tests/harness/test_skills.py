"""Which skill a task text brings up, and when none is given."""

from __future__ import annotations

import pytest

from evolve.harness.artifact import Skill, SkillHead
from evolve.harness.skills import SkillIndex


def skill(name: str, when: str) -> Skill:
    return Skill(SkillHead(id=f"skill.{name}", title=name, when=when, evidence="e"), "Do it.")


HEAT = skill("warming", "heat a thing in the microwave")
COOL = skill("chilling", "cool a thing in the fridge")
LAMP = skill("lighting", "examine a thing under the lamp")
INDEX = SkillIndex([HEAT, COOL, LAMP])


def found(text: str, *, top_k: int = 1, min_score: float = 0.0) -> list[Skill]:
    return list(INDEX.retrieve(text, top_k=top_k, min_score=min_score))


def test_the_words_of_the_task_decide() -> None:
    """The skill that shares telling words comes first, whatever the case of the letters."""
    assert found("COOL the mug, then put it down.") == [COOL]
    assert found("Examine the vase under a lamp.") == [LAMP]


def test_no_skill_is_a_result() -> None:
    """Nothing in common, nothing asked for, or too low a score gives no skill."""
    assert found("Sing a song.") == []
    assert found("") == []
    assert found("Cool the mug.", top_k=0) == []
    assert found("Cool the mug.", min_score=100.0) == []


def test_more_skills_come_best_first() -> None:
    """Up to k are given, those that share more rare words before others."""
    assert found("Heat the egg in the microwave, then cool it.", top_k=2) == [HEAT, COOL]


def test_ties_are_broken_by_the_order_of_the_files() -> None:
    """Equal scores keep the order in which skills were listed, so that a prompt repeats."""
    twins = [skill("one", "wash the mug"), skill("two", "wash the mug"), skill("three", "dust the shelf")]
    index = SkillIndex(twins)
    assert list(index.retrieve("wash the mug", top_k=2, min_score=0.0)) == twins[:2]


@pytest.mark.parametrize("skills", [[], [skill("the", "of the")]])
def test_a_library_without_telling_words_gives_nothing(skills: list[Skill]) -> None:
    """An empty library, or one of stop words alone, is no error."""
    assert SkillIndex(skills).retrieve("heat the mug", top_k=3, min_score=0.0) == ()
