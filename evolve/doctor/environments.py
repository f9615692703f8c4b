"""The environments, and what the kernel offers to shut their rule code in."""

from __future__ import annotations

from collections.abc import Iterator

from evolve.bench import benchmark_names, find_benchmark
from evolve.config import Config
from evolve.doctor.finding import Finding
from evolve.environments.installed import environment_names, make_environment
from evolve.errors import EvolveError
from evolve.harness.worker import TIERS, WorkerPool


def environments(config: Config) -> Iterator[Finding]:
    """Make each environment that is installed, and say what one lacks."""
    benchmarks = {name for one in benchmark_names() for name in find_benchmark(one).environments}
    for name in environment_names():
        try:
            card = make_environment(name, config.environments.get(name, {})).card
        except (EvolveError, ImportError) as error:
            mend = f"evolve bench info {name}" if name in benchmarks else ""
            yield Finding(name=f"environment {name}", status="missing", detail=str(error), mend=mend)
        else:
            detail = f"version {card.version}, digest {card.digest[:12]}"
            yield Finding(name=f"environment {name}", status="ok", detail=detail)
    for name in sorted(set(config.environments) - set(environment_names()) - {config.environment}):
        yield Finding(
            name=f"environment {name}",
            status="warn",
            detail=f"[environments.{name}] is configured, and no environment of that name is installed",
            mend="`evolve env list` shows those that are",
        )


async def isolation(config: Config) -> Finding:
    """Start a rule worker with whatever this kernel gives, and compare that with what is asked for."""
    minimum = config.harness.isolation
    try:
        async with WorkerPool(minimum_tier="rlimits") as pool:
            found = pool.isolation
    except EvolveError as error:
        return Finding(name="rule isolation", status="missing", detail=str(error), blocks=True)
    gaps = f"; missing: {', '.join(found.missing)}" if found.missing else ""
    if TIERS.index(found.tier) < TIERS.index(minimum):
        return Finding(
            name="rule isolation",
            status="missing",
            detail=f"{found.tier}, and {minimum} is the minimum{gaps}",
            mend=f"another kernel, or --set harness.isolation={found.tier} (rule code is then less shut in)",
            blocks=True,
        )
    return Finding(name="rule isolation", status="warn" if gaps else "ok", detail=f"{found.tier}{gaps}")
