"""How the numbers and words of a report are put for people; the same on the terminal and on the page."""

from __future__ import annotations

from evolve import rates
from evolve.proposers.sandbox import OUTSIDE, UNPROTECTED
from evolve.records import Decision, FailureClass
from evolve.report.document import Report

DECISIONS = {Decision.ACCEPT: "accepted", Decision.REJECT: "rejected", Decision.CANNOT_TELL: "cannot tell"}
STAGES = ("scope", "lint", "load", "replay", "screen", "paired_test", "guards", "confirmation")
CLASS_MEANINGS = {
    FailureClass.ACTION: "what it meant to do was not written as a call that runs",
    FailureClass.CONTRACT: "its calls ran, but broke a rule of the environment",
    FailureClass.TRAJECTORY: "it went round in circles or used up its steps",
    FailureClass.REASONING: "it kept to the rules and was wrong; no harness mends that",
}
NOTHING = "–"


def percent(share: float | None) -> str:
    """Return a share of 1 as whole percents; small ones keep a digit."""
    if share is None:
        return NOTHING
    return rates.percent(share, 0 if share == 0 or share >= 0.1 else 1)


def points(change: float | None) -> str:
    """Return a change of score as signed points, 100 points being from all failed to all solved."""
    return NOTHING if change is None else f"{100 * change:+.1f}"


def interval(bounds: tuple[float, float] | None) -> str:
    """Return an interval of changes in points."""
    return NOTHING if bounds is None else f"{points(bounds[0])} to {points(bounds[1])}"


def count(number: int) -> str:
    """Return a whole number with thin groups of three digits."""
    return f"{number:,}".replace(",", "\u202f")


def plural(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count(number)} {noun}" + ("" if number == 1 else "s")


def money(cost_usd: float | None) -> str:
    """Return a cost in US dollars."""
    return "price not known" if cost_usd is None else f"{cost_usd:.4f} USD"


def duration(seconds: float | None) -> str:
    """Return a time as people say it."""
    if seconds is None:
        return "not finished"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{seconds:.1f} s"


def decision(word: Decision | None) -> str:
    """Return a decision in words."""
    return "under test" if word is None else DECISIONS[word]


def model_name(report: Report) -> str:
    """Return the name of the source model, or what is known instead."""
    return report.model.model_id or f"unnamed {report.model.kind} model"


def warnings(report: Report) -> tuple[tuple[str, str], ...]:
    """Return what nobody who looks at the report may miss: a word, and the sentence that explains it."""
    found = []
    if report.model.is_recorded:
        told = (
            f"Completions were read from a recording of {model_name(report)}; no model was asked in this run. "
            "What counts as asked below was answered by the recording."
        )
        found.append(("RECORDED", told))
    if report.isolation.is_unprotected:
        told = "Rule code ran with resource limits alone: nothing kept it from files and the network."
        found.append(("UNPROTECTED", told))
    if "seatbelt" in report.isolation.tiers:
        told = "Rule code ran under the profile for macOS: its self-test held, evolve's own tests do not cover it."
        found.append(("NOT TESTED", told))
    if UNPROTECTED in report.isolation.proposers:
        found.append(("UNPROTECTED", f"A coding agent ran outside any sandbox. {OUTSIDE}"))
    if report.totals.errors:
        told = f"{plural(report.totals.errors, 'episode')} could not be played and are scored nowhere."
        found.append(("INCOMPLETE", told))
    return tuple(found)
