"""The machine-readable last lines of a commit message: what a commit of evolve says of itself."""

from __future__ import annotations

from evolve.records import Record

_PREFIX = "Evolve-"


class Trailers(Record):
    """What is known of the commit; None leaves a line out. Values are text as printed."""

    run: str | None = None
    candidate: str | None = None
    verdict: str | None = None
    effect: str | None = None
    interval: str | None = None
    cost: str | None = None
    evidence: str | None = None
    ruler: str | None = None

    @classmethod
    def parse(cls, message: str) -> Trailers:
        """Read the trailers of a commit message; lines of other tools are passed over."""
        last = message.strip().split("\n\n")[-1]
        pairs = (line.split(": ", 1) for line in last.splitlines() if line.startswith(_PREFIX) and ": " in line)
        values = {name.removeprefix(_PREFIX).lower(): value.strip() for name, value in pairs}
        return cls(**{name: value for name, value in values.items() if name in cls.model_fields})

    def lines(self) -> list[str]:
        """Return one line for each value that is set, in the order of the fields."""
        values = ((name, getattr(self, name)) for name in type(self).model_fields)
        return [f"{_PREFIX}{name.capitalize()}: {' '.join(value.split())}" for name, value in values if value]

    def under(self, message: str) -> str:
        """Return a commit message that ends with these trailers."""
        return "\n\n".join(part for part in (message.strip(), "\n".join(self.lines())) if part) + "\n"
