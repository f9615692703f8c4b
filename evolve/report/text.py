"""The report as plain text for a terminal: aligned tables, no colour, nothing wider than its content asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from evolve.figures import NOTHING, count, duration, grouped, interval, moment, money, points
from evolve.records import FailureClass, Usage
from evolve.report.document import CandidateReport, IterationReport, LookReport, Report
from evolve.report.wording import decision, model_name, percent, warnings

WIDEST_CELL = 60
INDENT = "  "
NUMBER = re.compile(r"[+-]?\d[\d ,./]*")


def text(report: Report) -> str:
    """Return the report as lines for a terminal, ending with a line end."""
    sections = (
        _opening(report),
        _section("Iterations", _iterations(report)),
        _section("Patterns of the last iteration", _patterns(report)),
        *(_candidate(candidate) for candidate in report.candidates),
        _section("Units (training episodes in which they fired)", _units(report)),
        _section("Held-out looks", _looks(report)),
        _section("Frozen harnesses", [f"{each.name}  {each.tag}  {each.commit[:12]}" for each in report.freezes]),
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _opening(report: Report) -> list[str]:
    run, totals = report.run, report.totals
    facts = (
        ("model", f"{model_name(report)} ({report.model.kind}, fingerprint {report.model.digest[:12]})"),
        ("status", f"{run.standing}: {run.reason}" if run.reason else run.standing),
        ("started", f"{moment(run.started_at)}, {duration(run.wall_s)}"),
        ("proposer", run.proposer),
        ("episodes", f"{grouped(totals.episodes)}, {count(totals.errors, 'error')}"),
        ("requests", f"{grouped(totals.requests_asked)} asked, {grouped(totals.requests_reused)} reused"),
        ("tokens", _tokens(totals.usage)),
        ("isolation", ", ".join(report.isolation.tiers) or "no rule ran"),
        *((("sandbox", ", ".join(report.isolation.proposers)),) if report.isolation.proposers else ()),
        ("error budget", report.budget.sentence),
        *(("A/A control", " ".join(check.reasons)) for check in report.self_checks),
        ("measured with", f"ruler {report.ruler}" if report.ruler else "no ruler on record"),
        *(("held-out", f"committed to {made.digest} since {moment(made.made_at)}") for made in report.commitments),
        ("guard tasks", f"looked at {count(report.guard_uses, 'time')}, in all runs of this environment"),
    )
    notices = [f"{word}: {sentence}" for word, sentence in warnings(report)]
    return [f"Run {run.run_id} on {run.environment}", *notices, "", *_table(facts, is_cut=False)]


def _tokens(usage: Usage) -> str:
    told = f"{grouped(usage.prompt_tokens)} prompt, {grouped(usage.completion_tokens)} completion"
    return f"{told}; {money(usage.cost_usd)}"


def _iterations(report: Report) -> list[str]:
    head = ("", "solved", "95% interval", *(each.value for each in FailureClass), "candidate", "verdict", "points")
    return _table([head, *(_iteration(each) for each in report.iterations)])


def _iteration(iteration: IterationReport) -> Sequence[str]:
    seen, candidate = iteration.baseline, iteration.candidate
    low, high = seen.ci95
    return (
        str(iteration.number),
        f"{seen.solved}/{seen.tasks}",
        f"{percent(low)} to {percent(high)}",
        *(str(iteration.failure_classes[each]) for each in FailureClass),
        candidate.candidate_id if candidate else NOTHING,
        decision(candidate.decision) if candidate else NOTHING,
        points(candidate.effect) if candidate else NOTHING,
    )


def _patterns(report: Report) -> list[str]:
    last = next((each for each in reversed(report.iterations) if each.patterns), None)
    if last is None:
        return []
    head = ("pattern", "class", "failing tasks", "successes that match")
    rows = [(p.title, p.failure_class.value, str(p.support), str(p.counter_support)) for p in last.patterns]
    left = last.pattern_count - len(last.patterns)
    return [*_table([head, *rows]), *([f"and {left} more"] if left else [])]


def _candidate(candidate: CandidateReport) -> list[str]:
    told = f"{decision(candidate.decision)} {points(candidate.effect)} points ({interval(candidate.interval)})"
    facts = [
        ("hypothesis", candidate.hypothesis),
        ("patch", f"{candidate.layer.value} layer, {', '.join(candidate.files)}, by {candidate.proposer}"),
        ("verdict", told if candidate.effect is not None else decision(candidate.decision)),
        *(("", reason) for reason in candidate.reasons),
        ("stages", "  ".join(f"{stage.stage} {stage.outcome}" for stage in candidate.stages)),
        ("requests", f"{grouped(candidate.requests_asked)} asked, {grouped(candidate.requests_reused)} reused"),
    ]
    if candidate.divergence is not None:
        seen = candidate.divergence
        told = f"{seen.episodes_diverged} of {seen.episodes} episodes asked something new"
        facts.append(("divergence", f"{told}, {percent(seen.asked_share)} of the requests of a full re-run"))
        facts.append(("tokens", f"{grouped(seen.tokens_asked)} asked, {grouped(seen.tokens_reused)} reused"))
    if candidate.predictions is not None:
        foreseen = candidate.predictions
        share = f"precision {percent(foreseen.fixed_precision)}, recall {percent(foreseen.fixed_recall)}"
        facts.append(("foresight", f"{len(foreseen.fixed_hits)} of {len(foreseen.fixed_predicted)} fixes ({share})"))
    if candidate.tasks:
        facts.append(("tasks", _moves(candidate)))
    return [f"Candidate {candidate.candidate_id}", *_table(facts, is_cut=False)]


def _moves(candidate: CandidateReport) -> str:
    better = sum(task.change > 0 for task in candidate.tasks)
    worse = sum(task.change < 0 for task in candidate.tasks)
    return f"{better} better, {worse} worse, {len(candidate.tasks) - better - worse} the same"


def _units(report: Report) -> list[str]:
    if not report.units:
        return []
    head = ("unit", "strength", "fired", "episodes", "successes", "helped", "hurt", "faults")
    rows = [
        (
            u.unit,
            u.strength.value,
            *(grouped(n) for n in (u.firings, u.episodes, u.successes, u.helped, u.hurt, u.faults)),
        )
        for u in report.units
    ]
    return _table([head, *rows])


def _looks(report: Report) -> list[str]:
    if not report.looks:
        return []
    head = ("look", "frozen", "base", "with harness", "gain in points", "95% interval", "p", "completions")
    return _table([head, *(_look(look) for look in report.looks)])


def _look(look: LookReport) -> Sequence[str]:
    found = look.evaluation
    if found is None:
        return (str(look.look.number), look.look.frozen_name, "not finished", *[NOTHING] * 5)
    return (
        str(look.look.number),
        look.look.frozen_name,
        f"{found.base.successes}/{found.base.n} ({percent(found.base.rate)})",
        f"{found.frozen.successes}/{found.frozen.n} ({percent(found.frozen.rate)})",
        points(found.gain),
        interval(found.interval),
        f"{found.p:.2g}",
        "RECORDED" if found.is_recorded else "live",
    )


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [title, *lines] if lines else []


def _table(rows: Iterable[Sequence[str]], *, is_cut: bool = True) -> list[str]:
    """Align columns; control characters of untrusted text are dropped, and long cells are cut where asked."""
    clean = [[_cell(cell, is_cut=is_cut) for cell in row] for row in rows]
    columns = [_aligned(column) for column in zip(*clean, strict=True)]
    return [INDENT + INDENT.join(row).rstrip() for row in zip(*columns, strict=True)]


def _aligned(column: Sequence[str]) -> list[str]:
    """Pad the cells of a column to one width: numbers under a heading to the right, all else to the left."""
    width = max(map(len, column))
    is_numeric = len(column) > 1 and all(cell == NOTHING or NUMBER.fullmatch(cell) for cell in column[1:])
    return [cell.rjust(width) if is_numeric else cell.ljust(width) for cell in column]


def _cell(words: str, *, is_cut: bool) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in words)
    return f"{plain[: WIDEST_CELL - 1]}…" if is_cut and len(plain) > WIDEST_CELL else plain
