"""Benchmarks and their checks as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from evolve.bench import BenchmarkState, Verification
from evolve.cli.output import table
from evolve.config import Config
from evolve.environments.data import Benchmark
from evolve.figures import count


def options_of(benchmark: Benchmark, asked: str, config: Config, data: Path | None) -> dict[str, object]:
    """Return the options under which a benchmark is looked at.

    Args:
        asked: the name that was given: where it is an environment's, its table counts, else the first there is.
        data: the folder given on the command line, which outranks the table's.
    """
    names = [asked, *benchmark.environments]
    chosen = next((config.environments[name] for name in names if name in config.environments), {})
    return {**chosen, **({"data": data} if data else {})}


def states_text(states: Sequence[BenchmarkState]) -> str:
    """Return all benchmarks as a table."""
    if not states:
        return "no benchmark is installed"
    rows = [(s.name, ", ".join(s.environments), "yes" if s.is_ready else "no", s.title) for s in states]
    return table(("NAME", "ENVIRONMENTS", "READY", "TITLE"), rows)


def state_text(state: BenchmarkState) -> str:
    """Return one benchmark with the state of each of its files and what brings the rest."""
    rows = [(f.path, "needed" if f.is_needed else "optional", f.state, f.what) for f in state.files]
    lines = [
        f"{state.name}: {state.title}",
        f"  played as {', '.join(state.environments)}",
        f"  licence   {state.licence}",
        f"  source    {state.source}",
        f"  folder    {state.folder}",
        *(f"  {line}" for line in _lacks(state)),
        "",
        table(("FILE", "NEED", "STATE", "WHAT"), rows),
    ]
    if state.notes:
        lines += ["", state.notes]
    return "\n".join(lines if state.is_ready else [*lines, "", *_commands(state)])


def fetch_text(state: BenchmarkState) -> str:
    """Return the commands that bring a benchmark."""
    return "\n".join([f"The data of {state.name} belongs in {state.home}.", *_lacks(state), *_commands(state)])


def taken_text(state: BenchmarkState, taken: Sequence[str]) -> str:
    """Say which files were taken and what still lacks."""
    end = f"`evolve bench verify {state.name}` checks it." if state.is_ready else "Still missing:"
    return "\n".join([f"Took {count(len(taken), 'file')} into {state.home}. {end}", *_lacks(state)])


def lost_heldout_text(environments: Sequence[str], folder: Path) -> str:
    """Say that held-out data which was found elsewhere is found no more, now that a folder without it comes first."""
    return (
        f"warning: the held-out data of {', '.join(environments)} was found elsewhere before; {folder} comes first now "
        "and has none. Bring it there too, or remove the folder; until then no version can be evaluated"
    )


def verification_text(found: Verification) -> str:
    """Return the checks of one environment, and the score of doing nothing beside them."""
    if found.missing:
        return f"{found.environment}: cannot be checked\n  {found.missing}"
    lines = [f"{found.environment}: {'holds' if found.holds else 'does not hold'}"]
    for check in found.checks:
        lines.append(f"  {'held' if check.holds else 'NOT HELD':<8}  {check.name}")
        if check.detail:
            lines.append(f"            {check.detail}")
    if found.nothing is not None:
        nothing = found.nothing
        lines.append(f"  doing nothing solves {nothing.successes} of {nothing.tasks}, mean score {nothing.mean:g}")
    return "\n".join(lines)


def _lacks(state: BenchmarkState) -> Iterator[str]:
    """Yield what is needed and not there, in words."""
    if state.missing_modules and state.extra:
        absent = ", ".join(state.missing_modules)
        yield f"missing: {absent}; pip install 'evolve-harness[{state.extra}]' brings it"
    for program in state.missing_programs:
        yield f"missing: {program} is not on PATH"
    for file in state.files:
        if file.state == "altered":
            yield f"altered: {file.path} is not the pinned file"
        elif file.is_needed and file.state == "absent":
            yield f"missing: {file.path} ({file.what})"
    if state.missing_forms:
        yield f"missing: one of {'; '.join(state.missing_forms)}"
    if state.lacks:
        yield f"missing: {state.lacks}"


def _commands(state: BenchmarkState) -> Iterator[str]:
    yield "All that is needed is here; these commands bring it anew:" if state.is_ready else "These commands bring it:"
    yield from (f"  {line}" for line in state.fetch)
    yield f"Files at hand elsewhere: evolve bench fetch {state.name} --from DIR"
