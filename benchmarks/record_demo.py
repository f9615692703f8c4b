"""Makes the demo's recordings out of a workspace in which `evolve demo --live` was run.

    evolve demo --live --model FILE.gguf --into DIR
    python benchmarks/record_demo.py DIR

Only the completions that the runs and the evaluation used are kept, by the digest of their requests.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from evolve.config import load_config
from evolve.demonstration.settings import ENVIRONMENTS, TEMPLATE
from evolve.models.cache import CompletionCache
from evolve.models.create import create_model
from evolve.models.recorded import write_recording
from evolve.records import ModelFingerprint
from evolve.resources import resource
from evolve.traces import Traces

RECORDINGS = Path(__file__).parent.parent / "traces" / "recordings"


def used_requests(workspace: Path, environment: str) -> set[str]:
    """Return the digests of all requests in the episodes of an environment, held-out ones included."""
    scanned = Traces(workspace / "traces").scan(environment)
    return {step.request for _, episode in scanned for step in episode.steps if step.request}


def record(workspace: Path, environment: str, fingerprint: ModelFingerprint) -> int:
    """Write the recording of one environment; return how many completions it holds."""
    wanted = used_requests(workspace, environment)
    with CompletionCache(workspace / "traces" / "completions" / f"{fingerprint.digest[:16]}.jsonl") as cache:
        entries = [(key, completion) for key, completion in cache.entries() if key in wanted]
    note = f"`evolve demo --live` on {environment}"
    write_recording(RECORDINGS / f"{environment}.jsonl.xz", fingerprint, entries, note)
    return len(entries)


def main() -> None:
    """Read the command line and write the recordings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--model", type=Path, required=True, help="the GGUF file that was asked")
    parser.add_argument("--environments", nargs="+", default=list(ENVIRONMENTS))
    chosen = parser.parse_args()
    for environment in chosen.environments:
        count = record(chosen.workspace, environment, demo_fingerprint(environment, chosen.model))
        print(f"{environment}: {count} completions")


def demo_fingerprint(environment: str, model: Path) -> ModelFingerprint:
    """Return the fingerprint under which the demo asks a model."""
    flags = {"model.kind": "local", "model.path": str(model), "model.chat_template": str(resource(TEMPLATE))}
    loaded = load_config(None, file=resource(f"recordings/{environment}.toml"), flags=flags)
    return create_model(loaded.config.model).fingerprint


if __name__ == "__main__":
    main()
