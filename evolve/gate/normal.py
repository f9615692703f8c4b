"""The normal distribution on arrays. numpy has no error function; the standard library has one for scalars."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_erfc = np.frompyfunc(math.erfc, 1, 1)
_quantile = np.frompyfunc(NormalDist().inv_cdf, 1, 1)


def upper_tail(z: ArrayLike) -> Floats:
    """Return P(Z > z)."""
    return np.asarray(_erfc(np.asarray(z, dtype=float) / math.sqrt(2.0)), dtype=float) / 2.0


def density(z: ArrayLike) -> Floats:
    """Return the standard normal density at z."""
    values = np.asarray(z, dtype=float)
    return np.asarray(np.exp(-values * values / 2.0) / math.sqrt(2.0 * math.pi), dtype=float)


def z_of(p: ArrayLike) -> Floats:
    """Return the z whose upper tail is p, for 0 < p < 1."""
    return -np.asarray(_quantile(np.asarray(p, dtype=float)), dtype=float)
