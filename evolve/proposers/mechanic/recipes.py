"""Which signature the mechanic repairs by which unit, in which layer. A table; the words are in `prompts/mechanic/`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

from evolve.classify import completion, near, readings
from evolve.proposers.mechanic import carried
from evolve.records import Layer, Pattern

FEWEST_UNCLOSED_SHARE = 0.25
FEWEST_RULE_WORDS = 4


def always(pattern: Pattern) -> bool:
    """Apply to every pattern of the kind."""
    return True


def is_near(pattern: Pattern) -> bool:
    """Apply where the slip has one near choice."""
    return not pattern.signature.endswith((":none", ".none"))


def is_far(pattern: Pattern) -> bool:
    """Apply where the slip has no near choice."""
    return not is_near(pattern)


def has_text(pattern: Pattern) -> bool:
    """Apply where the environment said something that can be told beforehand."""
    return len(str(pattern.detail.get("text", "")).split()) >= FEWEST_RULE_WORDS


def is_left_open(pattern: Pattern) -> bool:
    """Apply where successes end with a closing tool and many of the failures never called it."""
    unclosed = int(pattern.detail.get("unclosed", 0))
    return "closing_tool" in pattern.detail and unclosed >= FEWEST_UNCLOSED_SHARE * int(pattern.detail["count"])


def has_actions(pattern: Pattern) -> bool:
    """Apply where the environment publishes what can be done."""
    return bool(pattern.detail.get("has_actions"))


def is_telling(pattern: Pattern) -> bool:
    """Apply where few successes match: what they do too must not be discouraged."""
    return 2 * pattern.counter_support <= len(pattern.tasks)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How patterns of some kinds become one unit.

    `template` is a file of `prompts/mechanic/`; its ending says what it makes: `.py` a rule, `.txt` a contract
    note, `.md` a skill. `carries` are modules whose functions the rule needs beside it. A keyed recipe makes one
    unit for each pattern, any other one unit in all; a bundled one puts the units of several patterns into one
    candidate, as each alone is too small to measure. `suits` says which patterns of these kinds it can repair.
    """

    name: str
    layer: Layer
    kinds: tuple[str, ...]
    template: str
    hypothesis: str
    carries: tuple[ModuleType, ...] = ()
    is_keyed: bool = False
    is_bundled: bool = False
    on_tool: bool = False
    suits: Callable[[Pattern], bool] = always

    def applies(self, pattern: Pattern) -> bool:
        """Say whether the pattern is one that this recipe can repair."""
        return pattern.signature.partition(":")[0] in self.kinds and self.suits(pattern)

    def unit_id(self, pattern: Pattern) -> str:
        """Name the unit: the same for the same recipe and, where it is keyed, the same signature."""
        if not self.is_keyed:
            return f"{self.layer.value}.{self.name}"
        return f"{self.layer.value}.{self.name}-{hashlib.sha256(pattern.signature.encode()).hexdigest()[:6]}"


GOING_ROUND = ("repeated_call", "oscillation", "stagnation")

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        "rescue-text-call",
        Layer.ACTION,
        ("call_as_text",),
        "rescue-text-call.py.j2",
        "The reply spells out exactly one call in its text; running it saves the step.",
        carries=(readings, carried),
    ),
    Recipe(
        "repair-arguments",
        Layer.ACTION,
        ("bad_json",),
        "repair-arguments.py.j2",
        "The arguments are JSON but for quotes, commas or closers; they can be read in one way only.",
        carries=(readings,),
    ),
    Recipe(
        "near-names",
        Layer.ACTION,
        ("unknown_tool", "wrong_argument_name"),
        "near-names.py.j2",
        "The tool or argument is misnamed and exactly one real name is near; the call can run under it.",
        carries=(near,),
        suits=is_near,
    ),
    Recipe(
        "near-values",
        Layer.ACTION,
        ("outside_enum", "not_admissible"),
        "near-values.py.j2",
        "The value is outside the published ones and exactly one of them is near; the call can run with it.",
        carries=(near, carried),
        suits=is_near,
    ),
    Recipe(
        "complete-id",
        Layer.ACTION,
        ("outside_pattern",),
        "complete-id.py.j2",
        "The value lacks only the fixed beginning of its pattern; completed, the call can run with it.",
        carries=(completion,),
        suits=is_near,
    ),
    Recipe(
        "list-untried",
        Layer.TRAJECTORY,
        ("not_admissible", *GOING_ROUND, "budget_gone"),
        "list-untried.py.j2",
        "The model loses track of what it tried; the untried actions after each step keep it moving.",
        carries=(carried,),
        suits=has_actions,
    ),
    Recipe(
        "offer-actions",
        Layer.TRAJECTORY,
        ("not_admissible", "no_effect"),
        "offer-actions.py.j2",
        "The model asks for actions that are not possible; told the most similar possible ones, it picks one of them.",
        carries=(carried,),
        suits=is_far,
    ),
    Recipe(
        "lift-refusal",
        Layer.CONTRACT,
        ("rejected", "no_effect"),
        "lift-refusal.txt.j2",
        "The environment keeps rules that no description tells; told beforehand, the model follows them.",
        is_keyed=True,
        is_bundled=True,
        on_tool=True,
        suits=has_text,
    ),
    Recipe(
        "require-argument",
        Layer.CONTRACT,
        ("missing_argument",),
        "require-argument.txt.j2",
        "The model leaves out an argument that the schema requires; a note on the tool reminds it.",
        is_keyed=True,
        on_tool=True,
    ),
    Recipe(
        "list-values",
        Layer.CONTRACT,
        ("outside_enum",),
        "list-values.txt.j2",
        "The model invents values for a closed list; the list in the tool's own words holds it to them.",
        is_keyed=True,
        on_tool=True,
        suits=is_far,
    ),
    Recipe(
        "name-tools",
        Layer.CONTRACT,
        ("unknown_tool",),
        "name-tools.txt.j2",
        "The model calls tools that do not exist; told that the list is complete, it keeps to it.",
        suits=is_far,
    ),
    Recipe(
        "call-every-turn",
        Layer.CONTRACT,
        ("text_only", "malformed", "call_as_text", "bad_json"),
        "call-every-turn.txt.j2",
        "The model talks where only calls count; told so beforehand, it calls.",
    ),
    Recipe(
        "act-before-closing",
        Layer.CONTRACT,
        ("closed_early",),
        "act-before-closing.txt.j2",
        "The model ends the task before it changed anything; told what the closing call means, it acts first.",
        is_keyed=True,
        on_tool=True,
        suits=is_telling,
    ),
    Recipe(
        "confirm-close",
        Layer.ACTION,
        ("closed_early",),
        "confirm-close.py.j2",
        "The model ends the task before it changed anything; asked once, it makes the change that is due.",
        is_keyed=True,
        suits=is_telling,
    ),
    Recipe(
        "warn-repeats",
        Layer.TRAJECTORY,
        (*GOING_ROUND, "budget_gone"),
        "warn-repeats.py.j2",
        "The episode goes round; told what was tried in vain and what was not tried yet, the model leaves the loop.",
        carries=(carried,),
    ),
    Recipe(
        "block-repeats",
        Layer.ACTION,
        GOING_ROUND,
        "block-repeats.py.j2",
        "A warning comes too late for a loop; a call that got the same answer twice is stopped and others are named.",
        carries=(carried,),
    ),
    Recipe(
        "close-at-end",
        Layer.CONTRACT,
        ("budget_gone",),
        "close-at-end.txt.j2",
        "Successful episodes end with a closing call that failing ones never make; told so, the model makes it.",
        suits=is_left_open,
    ),
    Recipe(
        "low-budget",
        Layer.TRAJECTORY,
        ("budget_gone",),
        "low-budget.py.j2",
        "The steps run out unnoticed; warned in time, the model does what is still missing.",
        carries=(carried,),
    ),
    Recipe(
        "common-procedure",
        Layer.SKILL,
        ("procedure",),
        "common-procedure.md.j2",
        "Successful episodes of this family share one order of calls; shown it, the model need not rediscover it.",
        is_keyed=True,
    ),
)


def recipes_for(pattern: Pattern) -> Iterator[Recipe]:
    """Yield the recipes that can repair a pattern, best first."""
    return (recipe for recipe in RECIPES if recipe.applies(pattern))
