"""One thing that was looked at."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evolve.records import Record


class Finding(Record):
    """One thing that was looked at."""

    name: str
    status: Literal["ok", "warn", "missing"]
    detail: str
    mend: str = Field(default="", description="the command, or the act, that mends it")
    blocks: bool = Field(default=False, description="True where no run is possible before it is mended")
