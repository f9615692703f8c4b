"""When a candidate may be accepted without a gain: it is simpler or cheaper, and not worse."""

from __future__ import annotations

from collections.abc import Mapping

from evolve.gate.guards import GuardDecision
from evolve.gate.interval import gain_interval
from evolve.gate.scores import PairedScores
from evolve.records import Json

MARGIN = 0.03
MARGIN_LEVEL = 0.90  # two-sided interval whose lower bound is compared: 5% one-sided


def simplification(
    scores: PairedScores, *, units: tuple[int, int], tokens: Mapping[str, float], level: float = MARGIN_LEVEL
) -> GuardDecision:
    """Decide whether a candidate that is simpler or cheaper may be accepted because it is not worse.

    Non-inferiority: the lower bound of the interval of the gain (by default the 90% one, each side at 5%) must lie
    above -3 points (Schuirmann 1987, J Pharmacokinet Biopharm 15:657, one side of it). Not for candidates that add
    units.

    Args:
        scores: both folds.
        units: number of harness units, (incumbent, candidate).
        tokens: mean tokens per episode of "incumbent" and "candidate".
        level: two-sided level of the interval: 1 - 2a for an error of a.
    """
    before, after = units
    is_simpler = after < before or (after == before and tokens["candidate"] < tokens["incumbent"])
    interval = gain_interval(scores, level=level)
    numbers: Json = {"gain": interval.estimate, "low": interval.low, "units": list(units), **tokens}
    if not is_simpler:
        reason = f"{after} units against {before} are no simplification, so only a gain can be accepted."
        return GuardDecision("veto", (reason,), numbers)
    told = f"{after} units against {before}, {interval}; {-100 * MARGIN:+.0f} points are the margin"
    if interval.low > -MARGIN:
        return GuardDecision("pass", (f"{told}: simpler and not worse.",), numbers)
    return GuardDecision("cannot_tell", (f"{told}: a loss cannot be ruled out.",), numbers)
