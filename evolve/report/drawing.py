"""Turns a matplotlib figure into inline SVG: same figure, same bytes; colours follow the page, text stays text.

matplotlib is imported when a figure is made, never before.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Each colour that a figure may use, and the variable of the page that takes its place, in light and in dark.
INK, MUTED, LINE = "#1b1f24", "#5b6470", "#d5d9df"
GOOD, BAD, UNSURE = "#0a7f5a", "#c2410c", "#8a6100"
OLD, NEW, REUSED = "#7a8594", "#1f5fbf", "#b9c6d8"
CLASS_COLOURS = {"action": "#2166c2", "contract": "#d98200", "trajectory": "#a8458f", "reasoning": "#98a1ad"}
VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    LINE: "line",
    GOOD: "good",
    BAD: "bad",
    UNSURE: "unsure",
    OLD: "old",
    NEW: "new",
    REUSED: "reused",
    **{colour: f"class-{name}" for name, colour in CLASS_COLOURS.items()},
}

_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a task id may hold a dollar sign
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "grid.color": LINE,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.constrained_layout.use": True,
}
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)


@dataclass(frozen=True)
class Plot:
    """A drawn figure: its name in the page, what it shows in a few words, the same for those who cannot see it, SVG."""

    name: str
    title: str
    alt: str
    svg: str


def draw(name: str, title: str, alt: str, *, size: tuple[float, float], paint: Callable[[Any], None]) -> Plot:
    """Return a plot.

    Args:
        name: an id, unique in the page.
        title: shown above the axes.
        alt: what a reader who cannot see it should know, numbers included.
        size: width and height in inches; the page scales it.
        paint: draws on the axes.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    buffer = io.StringIO()
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=size, facecolor="none")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot(facecolor="none")
        axes.tick_params(length=0)
        axes.set_title(title)
        paint(axes)
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return Plot(name, title, alt, _inline(buffer.getvalue(), name, title, alt))


def label(words: str, most: int = 24) -> str:
    """Return untrusted text as a short label that any font can draw."""
    plain = "".join(letter if " " <= letter <= "~" else "?" for letter in words)
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."


def _inline(svg: str, name: str, title: str, alt: str) -> str:
    """Make a standalone SVG fit to share a page: ids of its own, a name and a description, the page's colours."""
    svg = _METADATA.sub("", svg[svg.index("<svg") :])
    svg = svg.replace('id="', f'id="{name}-').replace("url(#", f"url(#{name}-")
    svg = svg.replace('xlink:href="#', f'xlink:href="#{name}-')
    opening, rest = svg.split(">", 1)
    opening = re.sub(r' (width|height)="[^"]*"', "", opening)
    told = f'<title id="{name}-title">{html.escape(title)}</title><desc id="{name}-alt">{html.escape(alt)}</desc>'
    svg = f'{opening} role="img" aria-labelledby="{name}-title {name}-alt">{told}{rest}'
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    return "\n".join(line.strip() for line in svg.splitlines() if line.strip())
