"""The demo, from the recordings that the package ships."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_the_demo_replays_a_real_model_to_the_published_numbers(tmp_path: Path) -> None:
    """Without a model, a key or a network, the demo accepts one candidate, rejects one, and says it is recorded."""
    command = [sys.executable, "-m", "evolve", "demo", "--json", "--into", str(tmp_path / "demo")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["recorded"] is True
    assert document["model"].startswith("qwen2.5-coder-1.5b")
    desk = document["environments"]["service_desk"]
    assert (desk["candidates"]["accepted"], desk["candidates"]["rejected"]) == (1, 1)
    assert (desk["base"]["successes"], desk["frozen"]["successes"], desk["frozen"]["n"]) == (3, 9, 34)
    page = Path(document["report_html"]).read_text("utf-8")
    assert "RECORDED" in page.upper()
    assert "RECORDED" in ended.stderr


def test_the_demo_leaves_a_workspace_that_git_can_read(tmp_path: Path) -> None:
    """The accepted candidate is a commit with its evidence in trailers, and the frozen version an annotated tag."""
    into = tmp_path / "demo"
    subprocess.run([sys.executable, "-m", "evolve", "demo", "--into", str(into)], capture_output=True, check=True)
    log = subprocess.run(
        ["git", "-C", str(into), "log", "-1", "--format=%B"], capture_output=True, text=True, check=True
    )
    assert "Evolve-Verdict: accept" in log.stdout
    kind = ["git", "-C", str(into), "cat-file", "-t", "evolve/service_desk/demo"]
    assert subprocess.run(kind, capture_output=True, text=True, check=True).stdout.strip() == "tag"
