"""Merges the sources of a configuration, the weakest first.

From strong to weak: flag, `--set key.path=value`, EVOLVE_* environment, `--config` file, evolve.toml, default. What a
run that goes on was told before counts where it was told: just below --set and flags, or in the file's place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evolve.config.sections import Config
from evolve.config.sources import Layered, Told, from_here, of_assignments, of_environ, of_file, section_of
from evolve.config.validate import validate
from evolve.errors import ConfigError

FILE_NAME = "evolve.toml"
BEFORE = "what the run was told before"


@dataclass(frozen=True)
class Loaded:
    """A validated configuration, the source of each value that is not a default, and what was told, before and now."""

    config: Config
    sources: Mapping[str, str]
    told: Told


def load_config(
    workspace: Path | None,
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    assignments: tuple[str, ...] = (),
    flags: Mapping[str, Any] | None = None,
    before: Told | None = None,
    only: Collection[str] | None = None,
) -> Loaded:
    """Merge all sources and validate.

    Args:
        workspace: folder that may hold an evolve.toml; None reads none.
        file: a further TOML file that outranks it.
        environ: environment variables; EVOLVE_MODEL__ID sets model.id.
        assignments: `key.path=value` texts of --set; values are TOML, bare words are strings.
            From any source an empty text is "not set" where a key may be that.
        flags: dotted keys given as command line flags.
        before: what a run that goes on was told before; what is told now outranks it.
        only: sections to read where the others may not be valid yet.

    Raises:
        ConfigError: names the key, its source and what is wrong.
    """
    before = before or Told()
    own = workspace / FILE_NAME if workspace is not None else None
    told_file = Layered(BEFORE, before.file) if file is None else from_here(of_file(file))
    renewed = told_file.values if file is not None else {}
    told_line = [
        Layered(BEFORE, {key: value for key, value in before.line.items() if key not in renewed}),
        from_here(of_assignments(assignments)),
        Layered("flag", {key: value for key, value in (flags or {}).items() if value is not None}),
    ]
    standing = [of_file(own)] if own is not None and own.is_file() else []
    merged, sources = _merge([*standing, told_file, *of_environ(environ or {}), *told_line], only)
    return Loaded(validate(merged, sources), sources, Told.now(told_file, told_line))


def _merge(layers: Sequence[Layered], only: Collection[str] | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values as a tree, and the source of each by dotted key; later layers outrank earlier ones."""
    merged: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in layers:
        for key, value in layer.values.items():
            if only is None or section_of(key) in only:
                _place(merged, key, value, layer.name)
                sources[key] = layer.name
    return merged, sources


def _place(tree: dict[str, Any], key: str, value: Any, source: str) -> None:
    *parents, last = key.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"{key} (from {source}): {parent} is a value, not a table")
    tree[last] = value
