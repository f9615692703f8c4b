"""How well rule code is shut in, weakest first, and what of it the self-test has shown to hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from evolve.errors import WorkerError
from evolve.harness.worker import seatbelt
from evolve.harness.worker.child.orders import Layers
from evolve.records import Json

Tier = Literal["rlimits", "seatbelt", "seccomp", "seccomp+landlock"]
TIERS: tuple[Tier, ...] = get_args(Tier)


@dataclass(frozen=True, slots=True)
class Isolation:
    """What the self-test found: the tier reached, the layers to put on, what stays open, what is missing and why."""

    tier: Tier
    layers: Layers
    open: tuple[str, ...]
    missing: tuple[str, ...]

    @classmethod
    def of(cls, report: Json, *, is_under_seatbelt: bool = False) -> Isolation:
        """Judge a self-test by what its probes could do, not by what the kernel said.

        Args:
            report: what the self-test sent.
            is_under_seatbelt: the zygote was started under a profile, where no probe was ever free.
        """
        if not report["before"] and not is_under_seatbelt:
            raise WorkerError(
                "the self-test of the rule worker cannot open a file even without isolation: it shows nothing"
            )
        after = report["after"]
        layers = Layers.NONE
        if after.get("LANDLOCK") == []:
            layers |= Layers.LANDLOCK
        if after.get("SECCOMP") == []:
            layers |= Layers.SECCOMP
        missing = [f"{name.lower()} ({reason})" for name, reason in report["refused"].items()]
        missing += [f"{name.lower()} (leaks: {', '.join(leaks)})" for name, leaks in after.items() if leaks]
        shut_by_profile = is_under_seatbelt and not seatbelt.SHUT & set(report["open"])
        tier: Tier = "seatbelt" if shut_by_profile and Layers.SECCOMP not in layers else _tier(layers)
        return cls(tier, layers, tuple(report["open"]), tuple(missing))

    def require(self, minimum: Tier) -> None:
        """Refuse a tier below the minimum.

        Raises:
            WorkerError: says which tier was reached, what is missing and what rule code could do.
        """
        if TIERS.index(self.tier) < TIERS.index(minimum):
            raise WorkerError(
                f"rule isolation reaches tier '{self.tier}', the configured minimum is '{minimum}'; "
                f"missing: {', '.join(self.missing)}; rule code could {', '.join(self.open)}"
            )


def _tier(layers: Layers) -> Tier:
    if Layers.SECCOMP not in layers:
        return "rlimits"
    return "seccomp+landlock" if Layers.LANDLOCK in layers else "seccomp"
