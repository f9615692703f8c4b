"""The doctor's findings for the command line; a configuration that does not read is a finding too."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from evolve.cli.place import find_place, wait_for, workspace_around
from evolve.config import Config
from evolve.doctor import Finding, examine
from evolve.errors import ConfigError
from evolve.figures import count


def look_around(
    start: Path | None, *, file: Path | None, assignments: list[str] | None, is_offline: bool
) -> list[Finding]:
    """Examine the machine and, where there is one, the workspace."""
    workspace = workspace_around(start)
    if workspace is None:
        none = Finding(name="workspace", status="warn", detail="not in one", mend="evolve init PATH")
        return [*wait_for(examine(None, Config(), os.environ, is_offline=is_offline)), none]
    try:
        place = find_place(workspace.root, file=file, assignments=assignments)
    except ConfigError as error:
        wrong = Finding(name="configuration", status="missing", detail=str(error), mend="mend that value", blocks=True)
        return [wrong, *wait_for(examine(workspace, None, os.environ, is_offline=True))]
    return wait_for(examine(workspace, place.config, place.environ, is_offline=is_offline))


def doctor_text(findings: Sequence[Finding]) -> str:
    """Return the findings as lines, each with what mends it below."""
    width = max(len(finding.name) for finding in findings)
    lines = [line for finding in findings for line in _lines(finding, width)]
    blocking = sum(finding.blocks for finding in findings)
    end = f"{count(blocking, 'thing')} must be mended before a run" if blocking else "ready for a run"
    return "\n".join([*lines, "", end])


def _lines(finding: Finding, width: int) -> Iterator[str]:
    is_optional = finding.status == "missing" and not finding.blocks
    yield f"{'absent' if is_optional else finding.status:<8} {finding.name:<{width}}  {finding.detail}"
    if finding.mend:
        yield f"{'':<{width + 9}}  → {finding.mend}"
