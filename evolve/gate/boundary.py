"""How strict each stage of a sequential test must be, so that all its looks together cost one alpha."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evolve.gate.normal import density, upper_tail, z_of

Floats = NDArray[np.float64]

NODES = 401  # quadrature nodes per stage; 1601 move no level by more than 1% of itself
FAR = 7.0  # standard deviations beyond which the density is left out


@dataclass(frozen=True, slots=True)
class Boundary:
    """Per stage the z at which a test accepts (at or above) and stops for futility (at or below)."""

    accept: tuple[float, ...]
    futile: tuple[float, ...]

    @property
    def accept_p(self) -> tuple[float, ...]:
        """The acceptance bounds as one-sided p-values."""
        return tuple(float(p) for p in upper_tail(self.accept))

    @property
    def futile_p(self) -> tuple[float, ...]:
        """The futility bounds as one-sided p-values."""
        return tuple(float(p) for p in upper_tail(self.futile))


@lru_cache(maxsize=256)
def boundary(*, information: tuple[float, ...], futile: tuple[float, ...], alpha: float, shape: float) -> Boundary:
    """Return the bounds of a one-sided group-sequential test with binding futility stops.

    Alpha is spent as alpha * t ** shape at information fraction t (Kim and DeMets 1987, Biometrika 74:149; shape 3
    is close to O'Brien and Fleming, 1 to Pocock; the idea is Lan and DeMets 1983, Biometrika 70:659). The bound of
    stage s is the one at which a null candidate that is still in the race crosses with just the probability that
    the stage may spend, found on the density of the running score B(t) = z sqrt(t), a Brownian motion under the null
    (Armitage, McPherson and Rowe 1969, JRSS A 132:235; Jennison and Turnbull 2000, chapter 19). No stage accepts at
    a p above alpha, though futility stops would allow it at the last; what that leaves unspent is not spent at all.

    Args:
        information: fraction of the final information at each stage, ascending, the last one 1.
        futile: z at or below which each stage stops; the last one separates "reject" from "cannot tell".
        alpha: false-accept rate of the whole test.
        shape: power of the spending function.

    Raises:
        ValueError: alpha is no probability, or futility stops meet the acceptance bound before the last stage.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha {alpha} is not between 0 and 1")
    accept: list[float] = []
    one_shot = float(z_of(alpha))
    nodes, mass, before, spent = np.zeros(1), np.ones(1), 0.0, 0.0
    for t, stop in zip(information, futile, strict=True):
        scale = math.sqrt(t - before)
        level = max(_crossing(nodes, mass, scale, alpha * t**shape - spent), one_shot * math.sqrt(t))
        accept.append(level / math.sqrt(t))
        spent += _crossed(nodes, mass, scale, level)
        if t < 1.0:
            if stop >= accept[-1]:
                raise ValueError(f"futility bound {stop:.2f} leaves nothing below acceptance at {accept[-1]:.2f}")
            grid = np.linspace(max(stop, -FAR) * math.sqrt(t), level, NODES)
            nodes, mass = grid, _carried(grid, nodes, mass, scale)
        before = t
    return Boundary(tuple(accept), tuple(futile))


def _crossed(nodes: Floats, mass: Floats, scale: float, level: float) -> float:
    """Return the probability of the paths now at `nodes` to be above `level` after one more step."""
    return float(np.sum(mass * upper_tail((level - nodes) / scale)))


def _crossing(nodes: Floats, mass: Floats, scale: float, budget: float) -> float:
    """Return the score that a path now at `nodes` exceeds after one more step with probability `budget`."""
    low, high = -FAR, 2.0 * FAR
    for _ in range(50):
        middle = (low + high) / 2.0
        if _crossed(nodes, mass, scale, middle) > budget:
            low = middle
        else:
            high = middle
    return high


def _carried(grid: Floats, nodes: Floats, mass: Floats, scale: float) -> Floats:
    """Return the probability at each grid node of the paths still in the race (trapezoid weights)."""
    # einsum, not @: a threaded BLAS waits for cores that other work holds, and this is small
    values = np.einsum("ij,j->i", density((grid[:, None] - nodes[None, :]) / scale), mass) / scale
    weights = np.full(len(grid), grid[1] - grid[0])
    weights[[0, -1]] /= 2.0
    return np.asarray(values * weights, dtype=float)


def rising(start: float, end: float, information: Sequence[float], curve: float) -> tuple[float, ...]:
    """Return futility bounds that rise from `start` at the first stage to `end` at the last, along t ** curve."""
    if len(information) == 1:
        return (end,)
    powers = [t**curve for t in information]
    return tuple(start + (end - start) * (p - powers[0]) / (powers[-1] - powers[0]) for p in powers)
