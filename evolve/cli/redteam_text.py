"""How the attacks on this machine came out, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evolve.cli.output import table
from evolve.figures import count
from evolve.redteam.outcome import Outcome


def redteam_text(outcomes: Sequence[Outcome]) -> str:
    """Return a line for each attack, each reason once, and what held."""
    head = ("VERDICT", "BY", "ATTACK", "CASE", "TIER")
    rows = [
        (o.verdict.upper() if o.verdict == "not held" else o.verdict, o.party, o.attack, o.case, o.tier)
        for o in outcomes
    ]
    reasons = Counter(outcome.detail for outcome in outcomes if outcome.detail)
    told = [f"not applicable ({count(number, 'attack')}): {reason}" for reason, number in reasons.items()]
    held, through, rest = (
        sum(outcome.verdict == verdict for outcome in outcomes) for verdict in ("held", "not held", "not applicable")
    )
    end = f"{count(len(outcomes), 'attack')}: {held} held, {through} not held, {rest} not applicable"
    return "\n".join([table(head, rows), "", *told, end])
