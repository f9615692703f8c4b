"""Checks a harness folder without running it: what `evolve harness check` and the `openai` proposer ask."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evolve.errors import HarnessError
from evolve.harness.artifact import Harness, read_folder, read_harness
from evolve.harness.lint_code import declared_units, lint_rules

PROPOSAL_FILE = "proposal.json"
"""Lies beside the harness files and is not one of them: whoever reads the workspace back leaves it out."""


def check_folder(folder: Path) -> list[str]:
    """Return what is wrong with a harness folder, one finding a line; a proposal.json beside it is passed over."""
    if elsewhere := _harnesses_below(folder):
        return [f"{folder} is no harness folder, it has no harness.toml; check one of {', '.join(map(str, elsewhere))}"]
    try:
        files = read_folder(folder)
    except HarnessError as error:
        return [str(error)]
    return check_files({path: content for path, content in files.items() if path != PROPOSAL_FILE})


def _harnesses_below(folder: Path) -> list[Path]:
    """Return the harness folders within a folder that is none: that of a workspace, or of all its harnesses."""
    if (folder / "harness.toml").exists():
        return []
    return sorted(file.parent for shape in ("*", "*/*") for file in folder.glob(f"{shape}/harness.toml"))


def check_files(files: Mapping[str, bytes]) -> list[str]:
    """Return what is wrong with the files of a harness."""
    try:
        harness = read_harness(files)
    except HarnessError as error:
        return [str(error)]
    return check_rules(harness)


def unit_ids(harness: Harness) -> set[str]:
    """Return the ids of all units, those of rules as the code declares them."""
    rules = (unit for source in harness.rule_sources.values() for unit in declared_units(source))
    return {*(unit for unit, _ in harness.text_units()), *rules}


def check_rules(harness: Harness) -> list[str]:
    """Return what the lint finds in rule code, as `file:line: message`."""
    return [
        f"{finding.file}:{finding.line}: {finding.message}"
        for name, source in harness.rule_sources.items()
        for finding in lint_rules(name, source)
    ]
