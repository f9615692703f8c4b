"""The common acceptance rules of other tools, for comparison only: one shot over tasks, k trials per arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from evolve.gate.scores import GRID
from evolve.gate.signflip import signflip_exact

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
CommonRule = Callable[[Floats], Bools]


def strictly_better(differences: Floats) -> Bools:
    """Accept a mean above the incumbent's."""
    return np.asarray(differences.mean(axis=1) > 0.0)


def not_worse(differences: Floats) -> Bools:
    """Accept a mean at or above the incumbent's."""
    return np.asarray(differences.mean(axis=1) >= 0.0)


def beyond_standard_errors(count: float) -> CommonRule:
    """Return the rule that accepts a mean difference above `count` standard errors, se = sd(differences) / sqrt(M)."""

    def accepts(differences: Floats) -> Bools:
        error = differences.std(axis=1, ddof=1) / np.sqrt(differences.shape[1])
        return np.asarray(differences.mean(axis=1) > count * error)

    return accepts


def signflip_significant(differences: Floats, level: float = 0.05) -> Bools:
    """Accept where the exact one-sided sign-flip p over tasks, P(T* >= T), lies below `level`.

    The p-value rests on the sizes of the differences and on their sum, so equal rows are worked out once.
    """
    steps = np.rint(differences * GRID).astype(np.int64)
    keys = np.column_stack([np.sort(np.abs(steps), axis=1), steps.sum(axis=1)])
    _, first, where = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    p_values = np.array([signflip_exact(steps[row]) for row in first])
    return np.asarray(p_values[where.ravel()] < level)


COMMON_RULES: Mapping[str, CommonRule] = MappingProxyType(
    {
        "mean > incumbent's": strictly_better,
        "mean >= incumbent's": not_worse,
        "mean + 1 SE": beyond_standard_errors(1.0),
        "mean + 2 SE": beyond_standard_errors(2.0),
        "sign-flip p < .05": signflip_significant,
    }
)
