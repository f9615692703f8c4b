"""The report as one self-contained HTML file: no network, no script. All text of models and proposers is escaped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from evolve import figures
from evolve.disk import in_words, replace_file
from evolve.errors import StoreError
from evolve.records import Decision, FailureClass, Json
from evolve.report import plots, wording
from evolve.report.document import CandidateReport, Report
from evolve.report.drawing import Plot
from evolve.resources import resource

TEMPLATE = "report/report.html.j2"
MEASURING = ("screen", "paired_test", "guards", "confirmation")
DIFF_KINDS = (
    ("+++", "file"),
    ("---", "file"),
    ("diff ", "file"),
    ("index ", "file"),
    ("new file", "file"),
    ("deleted file", "file"),
    ("@@", "hunk"),
    ("+", "added"),
    ("-", "removed"),
)


class DiffLine(NamedTuple):
    """A line of a patch and what it does."""

    kind: str
    words: str


class StageMark(NamedTuple):
    """A stage of the gate as the strip shows it: its name and its outcome, 'not reached' where there is none."""

    name: str
    outcome: str


def write_html(report: Report, path: Path) -> None:
    """Write the report; equal reports give equal files.

    Raises:
        StoreError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, page_of(report))
    except OSError as error:
        raise StoreError(f"the report cannot be written to {path}: {in_words(error)}") from error


def page_of(report: Report) -> str:
    """Return the page as text."""
    return (
        _templates()
        .get_template(TEMPLATE)
        .render(
            report=report,
            headline=headline(report),
            notices=wording.warnings(report),
            model_name=wording.model_name(report),
            score_plot=plots.score_plot(report) if report.iterations else None,
            class_plot=plots.class_plot(report) if report.iterations else None,
            heldout_plot=plots.heldout_plot(report),
            token_plot=plots.token_plot(report),
            task_plot=plots.task_plot,
            class_meanings=wording.CLASS_MEANINGS,
            Decision=Decision,
            FailureClass=FailureClass,
        )
    )


def headline(report: Report) -> list[str]:
    """Return what the run came to, in whole sentences for a reader who has seen nothing else."""
    return [*_training_sentences(report), *_heldout_sentences(report)]


def diff_lines(diff: str) -> Iterator[DiffLine]:
    """Yield the lines of a unified diff with what each does."""
    for line in diff.splitlines():
        yield DiffLine(next((kind for start, kind in DIFF_KINDS if line.startswith(start)), "same"), line)


def stage_marks(candidate: CandidateReport) -> list[StageMark]:
    """Return all stages of the gate in order, also those that the candidate never reached."""
    reached: dict[str, str] = {stage.stage: stage.outcome.replace("_", " ") for stage in candidate.stages}
    return [StageMark(name.replace("_", " "), reached.get(name, "not reached")) for name in wording.STAGES]


def findings(candidate: CandidateReport) -> list[str]:
    """Return the reasons that say how the decision came about: those of the stages that measured, or of the last."""
    measured = [reason for stage in candidate.stages if stage.stage in MEASURING for reason in stage.reasons]
    return measured or list(candidate.reasons)


def flat(numbers: Json, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the numbers of a stage as names and short texts."""
    for key, value in numbers.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, dict):
            yield from flat(value, f"{name}: ")
        else:
            yield name, f"{value:.4g}" if isinstance(value, float) else str(value)


def _training_sentences(report: Report) -> Iterator[str]:
    if not report.iterations:
        yield "The run has not finished its first look at the training tasks."
        return
    first, last = report.iterations[0].baseline, report.iterations[-1].baseline
    yield f"At the start, the frozen model solved {first.solved} of {first.tasks} training tasks."
    tested, accepted = len(report.candidates), report.count(Decision.ACCEPT)
    if tested:
        yield f"The gate tested {figures.count(tested, 'change')} of its harness and accepted {accepted}."
    if last != first:
        yield f"In the last iteration it solved {last.solved} of {last.tasks}."


def _heldout_sentences(report: Report) -> Iterator[str]:
    results = [look.evaluation for look in report.looks if look.evaluation is not None]
    if not results:
        yield "Nothing was evaluated on held-out tasks yet."
        return
    found = results[-1]
    yield (
        f"On held-out tasks, which the loop never sees, harness {found.name} solved {found.frozen.successes} of "
        f"{found.frozen.n} against {found.base.successes} of {found.base.n} without it: "
        f"{figures.points(found.gain)} points (95% interval {figures.interval(found.interval)})."
    )


def _figure(plot: Plot) -> Markup:
    """Return the SVG as it is: labels in it were escaped when it was drawn."""
    return Markup(plot.svg)  # noqa: S704  made by us, not by a model


def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(resource("prompts")),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    put = (figures.points, figures.interval, figures.grouped, figures.money, figures.duration, figures.moment)
    shown = (*put, wording.percent, wording.decision, diff_lines, stage_marks, findings, flat)
    environment.filters |= {each.__name__: each for each in shown}
    environment.filters |= {"figure": _figure}
    return environment
