"""The stages that ask no model: scope, lint, load, replay. They look at files, a loaded worker and old episodes."""

from __future__ import annotations

from collections.abc import Iterator

from evolve.errors import HarnessError
from evolve.gate.corpus import TaskCorpus
from evolve.gate.leak import find_leaks
from evolve.harness.artifact import check_unit_id
from evolve.harness.check import check_rules
from evolve.harness.episode import EpisodeHarness
from evolve.harness.runtime import HarnessRuntime
from evolve.loop.exam import Exam, passed, rejected
from evolve.loop.observe import EVIDENCE_TRIAL
from evolve.loop.replay import replay_episodes
from evolve.protocols import Session
from evolve.records import Episode, Json, Layer, StageResult

LAYER_OF_FILE = {"contract.toml": Layer.CONTRACT, "action.py": Layer.ACTION, "trajectory.py": Layer.TRAJECTORY}
MOST_SHOWN = 12


async def scope(exam: Exam) -> StageResult:
    """Only files of the harness folder changed, and one of them is of the layer that the proposal names."""
    candidate = exam.candidate
    if candidate.refused:
        return rejected("scope", *(f"Not taken: {reason}." for reason in candidate.refused[:MOST_SHOWN]))
    known = {entry.pattern.pattern_id for entry in exam.run.ledger.patterns(candidate.run_id, candidate.number)}
    if candidate.proposal.pattern_id not in known:
        return rejected("scope", f"The proposal names pattern {candidate.proposal.pattern_id!r}, which was not found.")
    layers = {_layer(path) for path in candidate.files} - {None}
    if layers and candidate.proposal.layer not in layers:
        found = ", ".join(sorted(layer.value for layer in layers if layer))
        return rejected(
            "scope", f"The proposal names layer {candidate.proposal.layer.value}; the files are of {found}."
        )
    return passed("scope", f"{len(candidate.files)} file(s) changed: {', '.join(candidate.files)}.")


async def lint(exam: Exam) -> StageResult:
    """The folder reads, rule code keeps to what is allowed, and nothing in it gives a training task away."""
    try:
        harness = exam.harness
    except HarnessError as error:
        return rejected("lint", f"{error}.")
    if harness.settings.environment != exam.run.name:
        return rejected("lint", f"harness.toml names environment {harness.settings.environment!r}.")
    findings = check_rules(harness)
    if findings:
        return rejected("lint", *findings[:MOST_SHOWN], findings=len(findings))
    leaks = find_leaks(exam.incumbent.harness.files, exam.files, await _corpus(exam))
    if leaks:
        return rejected("lint", *(str(leak) for leak in leaks[:MOST_SHOWN]), leaks=len(leaks))
    return passed("lint", "Files, rule code and texts are as allowed; no task is given away.")


async def load(exam: Exam) -> StageResult:
    """The harness loads in the worker; switched off it changes nothing; switched on it only adds notes to tools."""
    task = exam.run.train()[0]
    session = exam.run.environment.open(task, EVIDENCE_TRIAL)
    try:
        on = await _begin(exam, session, task.text, off=frozenset(exam.run.config.harness.off))
        off = await _begin(exam, session, task.text, off=frozenset(layer.value for layer in Layer))
        try:
            faults = [*_load_faults(exam, on, off, session)]
        finally:
            await on.close()
            await off.close()
    finally:
        session.close()
    if faults:
        return rejected("load", *faults[:MOST_SHOWN])
    return passed("load", "The harness loads; off is identical; tools differ by notes alone.", isolation=on.isolation)


async def replay(exam: Exam) -> StageResult:
    """Reject rules that would have hindered a successful episode, or that fail on recorded ones."""
    episodes = await exam.recorded_training_episodes()
    texts = {task.task_id: task.text for task in exam.run.train()}
    limit = exam.run.environment.card.step_limit
    seen = await replay_episodes(exam.runtime, episodes, texts, tools=exam.tools, step_limit=limit)
    numbers: Json = {
        "episodes": len(episodes),
        "fires_failing": dict(sorted(seen.fires_failing.items())),
        "fires_successful": dict(sorted(seen.fires_successful.items())),
        "harmful": len(seen.harm),
        "faults": len(seen.faults),
    }
    if seen.harm:
        return rejected("replay", *seen.harm[:MOST_SHOWN], **numbers)
    if len(seen.faults) > 1:
        return rejected("replay", *seen.faults[:MOST_SHOWN], **numbers)
    fired = sum(seen.fires_failing.values()), sum(seen.fires_successful.values())
    return passed(
        "replay",
        f"Over {len(episodes)} recorded episodes units fire in {fired[0]} failing and {fired[1]} successful cases; "
        "no useful call would have been blocked or changed.",
        **numbers,
    )


def _layer(path: str) -> Layer | None:
    return Layer.SKILL if path.startswith("skills/") else LAYER_OF_FILE.get(path)


async def _begin(exam: Exam, session: Session, text: str, *, off: frozenset[str]) -> EpisodeHarness:
    runtime = HarnessRuntime(exam.harness, exam.run.pool, cap=exam.run.config.harness.cap, off=off)
    limit = exam.run.environment.card.step_limit
    return await runtime.begin(session.opening, session.tools, task_text=text, step_limit=limit)


def _load_faults(exam: Exam, on: EpisodeHarness, off: EpisodeHarness, session: Session) -> Iterator[str]:
    yield from (f"{fault.unit}: {fault.message}" for fault in on.faults)
    if off.system != session.opening.system or list(off.tools) != list(session.tools):
        yield "With all layers off the prompt or the tools still differ."
    bare = [(tool.name, tool.parameters, tool.read_only) for tool in session.tools]
    if [(tool.name, tool.parameters, tool.read_only) for tool in on.tools] != bare:
        yield "The tools differ by more than notes in their descriptions."
    tools = {tool.name for tool in session.tools}
    for note in exam.harness.contract.tool:
        if note.tool not in tools:
            yield f"contract.toml: {note.id} is for a tool {note.tool!r} that is not offered."
    yield from _id_faults(exam, on)


def _id_faults(exam: Exam, on: EpisodeHarness) -> Iterator[str]:
    seen = {unit for unit, _ in exam.harness.text_units()}
    for unit, layer in on.rule_units:
        try:
            check_unit_id(unit, layer)
        except HarnessError as error:
            yield f"{error}."
        if unit in seen:
            yield f"Unit id {unit!r} is used twice."
        seen.add(unit)
    for unit in exam.harness.settings.units:
        if unit not in seen:
            yield f"harness.toml switches a unit {unit!r} that does not exist."


async def _corpus(exam: Exam) -> TaskCorpus:
    """Return the texts of the training tasks that a leak is measured against."""
    episodes = await exam.recorded_training_episodes()
    session = exam.run.environment.open(exam.run.train()[0], EVIDENCE_TRIAL)
    try:
        common = (
            session.opening.system,
            *(tool.description for tool in session.tools),
            *(str(tool.parameters) for tool in session.tools),
            exam.run.environment.card.description,
        )
    finally:
        session.close()
    return TaskCorpus(
        tasks={task.task_id: task.text for task in exam.run.train()},
        traces={episode.task_id: tuple(_words_of(episode)) for episode in episodes},
        common=common,
    )


def _words_of(episode: Episode) -> Iterator[str]:
    yield episode.opening.user
    for step in episode.steps:
        yield step.observation.text
        if step.executed is not None:
            yield str(step.executed.arguments)
