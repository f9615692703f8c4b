"""`evolve bench`: benchmarks, their data, and whether an environment keeps the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evolve.cli.options import AsJson, Assignments, ConfigFile, InWorkspace

group = typer.Typer(help="Benchmarks: what they need, how their data comes, whether they hold.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="A benchmark, or one of its environments.")]
DataFolder = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Where its data is.", show_default="below EVOLVE_DATA")
]


@group.command("info")
def info(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A benchmark; all without one.")] = None,
    data: DataFolder = None,
    config: ConfigFile = None,
    assignments: Assignments = None,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Show benchmarks: licence, source, files and their state, what is missing and what brings it.

    In a workspace it looks where the tables [environments.NAME] say.
    """
    from evolve.bench import benchmark_names, find_benchmark, state_of
    from evolve.cli.bench_text import options_of, state_text, states_text
    from evolve.cli.output import show
    from evolve.cli.place import configuration

    chosen = configuration(workspace, file=config, assignments=assignments)
    names = [name] if name else benchmark_names()
    found = {one: find_benchmark(one) for one in names}
    states = [state_of(benchmark, options_of(benchmark, one, chosen, data)) for one, benchmark in found.items()]
    documents = [{**state.model_dump(mode="json"), "is_ready": state.is_ready} for state in states]
    text = state_text(states[0]) if name else states_text(states)
    show({"benchmarks": documents}, text, as_json=as_json)


@group.command("fetch")
def fetch(
    name: Name,
    source: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="A folder that holds the files.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring the data of a benchmark: from a folder at hand, or else print the commands that bring it.

    Nothing is downloaded by evolve itself. Files are checked against their pinned digests before they are taken.
    """
    from evolve.bench import find_benchmark, state_of, take_files, with_heldout
    from evolve.cli.bench_text import fetch_text, lost_heldout_text, taken_text
    from evolve.cli.output import say, show

    benchmark = find_benchmark(name)
    before = set() if source is None else with_heldout(benchmark)
    taken = [] if source is None else take_files(benchmark, source)
    if lost := before - with_heldout(benchmark) if before else set():
        say(lost_heldout_text(sorted(lost), benchmark.home))
    state = state_of(benchmark, {})
    document = {"benchmark": benchmark.name, "folder": state.home, "taken": taken, "commands": list(state.fetch)}
    text = fetch_text(state) if source is None else taken_text(state, taken)
    show({**document, "is_ready": state.is_ready}, text, as_json=as_json)


@group.command("verify")
def verify(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An environment, or a benchmark for all of its own.")],
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Training tasks that are looked at.")] = 3,
    data: DataFolder = None,
    config: ConfigFile = None,
    assignments: Assignments = None,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Check that an environment keeps what every environment has to keep; held-out tasks are not listed.

    It works on any installed environment, yours too; in a workspace under the options of its table [environments.NAME].
    Exit code 1 where a check does not hold, 2 where nothing can be checked: an extra, data or an option is missing.
    """
    from evolve import bench
    from evolve.cli.bench_text import verification_text
    from evolve.cli.codes import OUR_BUG, USAGE
    from evolve.cli.output import show
    from evolve.cli.place import configuration
    from evolve.environments.installed import environment_names

    chosen = configuration(workspace, file=config, assignments=assignments).environments
    given = {"data": data} if data else {}
    options = {one: {**chosen.get(one, {}), **given} for one in environment_names()}
    found = list(bench.verify(name, options, tasks=tasks))
    documents = [{**one.model_dump(mode="json"), "holds": one.holds} for one in found]
    show({"environments": documents}, "\n\n".join(map(verification_text, found)), as_json=as_json)
    if any(one.holds is False for one in found):
        raise typer.Exit(OUR_BUG)
    if any(one.missing for one in found):
        raise typer.Exit(USAGE)
