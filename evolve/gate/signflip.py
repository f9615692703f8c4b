"""Sign-flip tests of paired differences, exact without sampling, and the stratified z beside them.

If a patch changes nothing, the two arms of a pair could be exchanged: each difference is as likely with the other
sign. One-sided p-values: small means that the candidate is better. Mid-p counts half of the probability of what was
observed (Lancaster 1961, JASA 56:223), which takes away the conservatism of coarse scores, and makes
p(arms swapped) = 1 - p hold exactly.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from evolve.gate.scores import PairedScores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SMALLEST = 1e-12  # below this the inverted characteristic function is rounding noise


def signflip_midp(steps: Ints) -> float:
    """Return the exact mid-p of T = sum(steps) when every step may carry either sign.

    p = P(T* > T) + P(T* = T) / 2 with T* = sum of e_i * |steps_i|, e_i = +1 or -1 with probability 1/2 each
    (Fisher 1935, The Design of Experiments, section 21; Ernst 2004, Statistical Science 19:676). For steps of one
    size this is McNemar's exact test with mid-p. Steps are whole numbers, so the distribution has a finite support
    and comes from its characteristic function: no random numbers, hence no seed. 0.5 without a non-zero step.
    """
    above, tie = _tail(steps)
    return above + tie / 2.0


def signflip_exact(steps: Ints) -> float:
    """Return P(T* >= T), the ordinary (conservative) p-value of the same test. 1 without a non-zero step."""
    above, tie = _tail(steps)
    return min(1.0, above + tie)


def _tail(steps: Ints) -> tuple[float, float]:
    """Return P(T* > T) and P(T* = T)."""
    sizes = np.abs(steps[steps != 0])
    if sizes.size == 0:
        return 0.0, 1.0
    unit = int(np.gcd.reduce(sizes))
    if np.all(sizes == unit):
        wins = int(np.count_nonzero(steps > 0))
        tie = float(Fraction(math.comb(sizes.size, wins), 2**sizes.size))
        return binomial_midp(wins, sizes.size - wins) - tie / 2.0, tie
    pmf = _distribution(sizes // unit)
    index = (int(steps.sum()) // unit + int(sizes.sum()) // unit) // 2
    return float(np.clip(pmf[index + 1 :].sum(), SMALLEST, 1.0 - SMALLEST)), float(pmf[index])


def _distribution(sizes: Ints) -> Floats:
    """Return P(sum of a random subset of `sizes` = n) for n = 0..sum(sizes).

    T* = 2 * (sum of the steps that drew +1) - sum(sizes), so the subset sum carries the same distribution on
    half the support. Its characteristic function is the product of (1 + exp(i w s)) / 2, inverted by one FFT.
    """
    length = int(sizes.sum()) + 1
    angles = 2.0 * math.pi * np.arange(length) / length
    spectrum = np.ones(length, dtype=complex)
    for size, count in zip(*np.unique(sizes, return_counts=True), strict=True):
        spectrum *= ((1.0 + np.exp(-1j * angles * size)) / 2.0) ** count
    return np.asarray(np.maximum(np.fft.ifft(spectrum).real, 0.0), dtype=float)


def binomial_midp(wins: int, losses: int) -> float:
    """Return P(X > wins) + P(X = wins) / 2 for X ~ Bin(wins + losses, 1/2), exact in whole numbers.

    McNemar's test on discordant pairs with mid-p (McNemar 1947, Psychometrika 12:153; Fagerland, Lydersen and Laake
    2013, BMC Medical Research Methodology 13:91, who recommend the mid-p form).
    """
    pairs = wins + losses
    above = sum(math.comb(pairs, x) for x in range(wins + 1, pairs + 1))
    return float(Fraction(2 * above + math.comb(pairs, wins), 2 ** (pairs + 1)))


def mcnemar_exact(wins: int, losses: int) -> float:
    """Return P(X >= wins) for X ~ Bin(wins + losses, 1/2): McNemar's exact one-sided p, for one trial per task."""
    pairs = wins + losses
    return float(Fraction(sum(math.comb(pairs, x) for x in range(wins, pairs + 1)), 2**pairs))


def pair_p(scores: PairedScores) -> float:
    """Return the sign-flip mid-p over pairs: is the candidate better *on these tasks*?

    Valid for "no mean gain over these tasks" too: flipping pairs takes E(d^2) for the variance of a pair, never less
    than its true Var(d) = E(d^2) - E(d)^2.
    """
    return signflip_midp(scores.steps())


def task_p(scores: PairedScores) -> float:
    """Return the sign-flip mid-p that flips whole tasks: would it be better *on other tasks like these*?"""
    return signflip_midp(scores.sums(lambda task: task.task_id))


def family_p(scores: PairedScores) -> float:
    """Return the sign-flip mid-p that flips whole families: for tasks that come in near copies of one another."""
    return signflip_midp(scores.sums(lambda task: task.family))


def stratified_z(scores: PairedScores) -> float:
    """Return the z of Cochran, Mantel and Haenszel with tasks as strata, for scores of any kind.

    z = sum_i n_i D_i / sqrt(sum_i V_i), V_i = 2 n_i S_i with S_i the sample variance of the 2 n_i pooled scores of
    task i: the permutation variance of n_i D_i (Mantel 1963, JASA 58:690). For pass/fail with t_i passes it
    is V_i = t_i (2 n_i - t_i) / (2 n_i - 1). Ignores the pairing, so it cannot profit from reused episodes. 0 where
    no task shows a difference.
    """
    total, variance = 0.0, 0.0
    for task in scores.tasks:
        pooled = np.array(task.pairs, dtype=float).ravel()
        if pooled.size:
            total += math.fsum(new - old for old, new in task.pairs)
            variance += pooled.size * float(pooled.var(ddof=1))
    return total / math.sqrt(variance) if variance > 0.0 else 0.0
