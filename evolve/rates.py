"""The interval of a rate of success."""

from __future__ import annotations

import math

Z95 = 1.959963984540054


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Return the 95% Wilson score interval of a rate; (0, 1) where nothing was measured.

    Source: E. B. Wilson 1927, J. Am. Stat. Assoc. 22:209.
    """
    if n == 0:
        return 0.0, 1.0
    rate, z2 = successes / n, Z95 * Z95
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
