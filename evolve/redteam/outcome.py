"""How an attack came out. It counts as held off only where the same attack works without the defence."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evolve.records import Record

Party = Literal["rule code", "coding agent", "child process"]
Verdict = Literal["held", "not held", "not applicable"]

TOOTHLESS = "it does not work here without the defence either"


class Outcome(Record):
    """One attack on this machine."""

    case: str = Field(description="its number in the list of attacks, docs/security.md")
    party: Party
    attack: str
    tier: str = Field(description="what shut the attacker in")
    verdict: Verdict
    detail: str = ""


def judged(
    case: str, party: Party, attack: str, *, tier: str, is_through: bool, is_through_undefended: bool
) -> Outcome:
    """Judge an attack by whether it gets through, with the defence and without."""
    verdict: Verdict = "not held" if is_through else "held" if is_through_undefended else "not applicable"
    detail = TOOTHLESS if verdict == "not applicable" else ""
    return Outcome(case=case, party=party, attack=attack, tier=tier, verdict=verdict, detail=detail)


def passed_over(case: str, party: Party, attack: str, *, reason: str) -> Outcome:
    """Return the outcome of an attack that cannot be tried here."""
    return Outcome(case=case, party=party, attack=attack, tier="none", verdict="not applicable", detail=reason)
