"""Where DBBench comes from and which of its files are read."""

from __future__ import annotations

from evolve.environments.data import Benchmark, DataFile

DEV = "dev.jsonl"
OPEN = "standard_open.jsonl"
STANDARD = "standard.jsonl"

BENCHMARK = Benchmark(
    name="dbbench",
    title="AgentBench DBBench",
    environments=("dbbench",),
    licence="Apache-2.0; table texts from Wikipedia, CC BY-SA",
    source="https://github.com/THUDM/AgentBench @ 578c5e9",
    files=(
        DataFile(DEV, "60 tasks, verbatim", "eb941c58a7a5651357b19e46aa05070f6cd5a7d83ce70cefd24aa3581e1e1130"),
        DataFile(
            OPEN,
            "152 of the 300 standard tasks, each with its index",
            "31ddbe65abba38e975c131dd3cc39e003834de66c6d16f9bab968b3da2f82c52",
        ),
        DataFile(STANDARD, "all 300 standard tasks, verbatim; the other 148 are held out", is_needed=False),
    ),
    fetch=(
        "git clone --no-checkout https://github.com/THUDM/AgentBench {folder}/checkout",
        "git -C {folder}/checkout checkout 578c5e9 -- data/dbbench",
        "cp {folder}/checkout/data/dbbench/dev.jsonl {folder}/checkout/data/dbbench/standard.jsonl {folder}/",
        "python -m evolve.environments.dbbench.divide {folder}",
    ),
    extra="dbbench",
    modules=("sqlglot",),
    notes="The engine mysql:// needs the extra dbbench-mysql and a MariaDB or MySQL server.",
)
