"""Runs the checks and says of each whether it holds; an environment that raises is found at fault, not a crash."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from evolve.environments.conformance.checks import CHECKS
from evolve.environments.conformance.subject import Subject
from evolve.errors import EvolveError
from evolve.records import Record


class Check(Record):
    """One thing that an environment has to keep. `detail` says what was seen where it does not hold."""

    name: str
    holds: bool
    detail: str = ""


def conformance(subject: Subject) -> Iterator[Check]:
    """Run the checks one after the other; an exception out of an environment is a check that does not hold."""
    for name, check in CHECKS.items():
        try:
            faults = list(check(subject))
        except Exception as error:  # whatever an environment raises here is what is being looked for
            faults = [f"{type(error).__name__}: {error}"]
        yield Check(name=name, holds=not faults, detail="; ".join(islice(faults, 3)))


def broken(error: EvolveError) -> Check:
    """Return the check that stands for all others where an environment cannot even be made."""
    return Check(name="it can be made", holds=False, detail=str(error))
