"""How the numbers and words of a report are put for people; the same on the terminal and on the page."""

from __future__ import annotations

from evolve import figures
from evolve.figures import NOTHING, count
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


def percent(share: float | None) -> str:
    """Return a share of 1 as whole percents; small ones keep a digit."""
    if share is None:
        return NOTHING
    return figures.percent(share, 0 if share == 0 or share >= 0.1 else 1)


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
        told = f"{count(report.totals.errors, 'episode')} could not be played and are scored nowhere."
        found.append(("INCOMPLETE", told))
    return tuple(found)
