"""Where OS interaction comes from and which of its files are read."""

from __future__ import annotations

from collections.abc import Mapping

from evolve.environments.data import Benchmark, DataFile
from evolve.environments.os_interaction.rootfs import NAME, chosen_rootfs
from evolve.environments.os_interaction.sandbox import require_sandbox
from evolve.errors import ConfigError

DEV = "os_dev.jsonl"
TRAIN = "os_train.jsonl"
STD = "os_std.jsonl"


def lacks(options: Mapping[str, object]) -> str:
    """Say why no sandbox can be had here; empty where one can."""
    try:
        require_sandbox()
        chosen_rootfs(options)
    except ConfigError as error:
        return str(error)
    return ""


BENCHMARK = Benchmark(
    name=NAME,
    title="AgentBench OS interaction",
    environments=("os_interaction",),
    licence="Apache-2.0",
    source="https://github.com/THUDM/AgentBench @ 578c5e9",
    files=(
        DataFile(TRAIN, "1,000 tasks", "97ee397b3ec0532950346bb04f5cd48e806261b1b9f7458398f296c501baa05b"),
        DataFile(DEV, "26 tasks", "de91f99e4da63eec5d39ee78a9200dd850fbc3cdef5914dc702abe340f7bbbe1", is_needed=False),
        DataFile(STD, "144 tasks, the held-out ones", is_needed=False),
    ),
    fetch=(
        "git clone --no-checkout https://github.com/THUDM/AgentBench {folder}/checkout",
        "git -C {folder}/checkout checkout 578c5e9 -- data/os_interaction",
        "python -m evolve.environments.os_interaction.inline {folder}/checkout/data/os_interaction {folder}",
        "python -m evolve.environments.os_interaction.build",
    ),
    programs=("bwrap", "unshare", "mount", "debootstrap"),
    lacks=lacks,
    notes="Linux and root; the last command makes the sandboxes' file system. Never run a task's script on a host.",
)
