"""The way that the README describes, by the files and commands of a user who brings a model of their own.

Other tests give runs a configuration and a model; here both come from evolve.toml as `init` writes it, edited by
hand, and the model is an endpoint that wants a key.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import small_run
from models.http_endpoint import Endpoint, Json, Reply, chat, serving

from evolve.protocols import ModelRequest

KEY = "sk-" + "the0key0of0the0journey0"


def answer(sent: Json) -> Json:
    """Answer as the agent of small runs does, in an endpoint's own words."""
    if len(sent["messages"]) == 1:  # `doctor` asks whether calls can be had
        return chat(None, [(sent["tools"][0]["function"]["name"], "{}")])
    completion = small_run.agent(ModelRequest(sent["messages"], sent["tools"], ""))
    calls = [(call.tool, call.arguments_text) for call in completion.calls]
    return chat(completion.text, calls or None)


def edited(text: str, changes: dict[str, str]) -> str:
    """Change lines of a file as a user does, who finds each once."""
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def git(root: Path, *words: str) -> str:
    """Return what git says."""
    return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=True).stdout


async def evolve(*words: object) -> Any:
    """Run a command in a process of its own and return its document."""
    environ = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "evolve", *map(str, words), "--json"),
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, f"{words}: {err.decode()}"
    return json.loads(out)


async def travel(root: Path) -> tuple[dict[str, Any], Endpoint]:
    """Go from `init` to the report; return what each command said, and what the endpoint was sent."""
    said = {"init": await evolve("init", root, "--env", "household")}
    async with serving(Reply(answer)) as endpoint:
        changes = {
            'id = ""': 'id = "mine"',
            "https://api.openai.com/v1": endpoint.url,
            "# price =": "price =",
            "# usd = 5.0": "usd = 5.0",
            "# [environments.household]\n# train = 30\n# guard = 20\n# heldout = 60": (
                "[environments.household]\ntrain = 20\nguard = 12\nheldout = 12"
            ),
        }
        (root / "evolve.toml").write_text(edited((root / "evolve.toml").read_text(), changes))
        example = (root / ".env.example").read_text()
        (root / ".env").write_text(edited(example, {"OPENAI_API_KEY=": f"OPENAI_API_KEY={KEY}"}))
        for name in ("doctor", "plan", "run"):
            said[name] = await evolve(name, "-C", root, *(("--iterations", 3) if name == "run" else ()))
        listed = (await evolve("candidates", "list", "-C", root))["candidates"]
        (candidate,) = (one for one in listed if one["review"] == "waiting")
        said["accept"] = await evolve("accept", candidate["candidate_id"], "-C", root)
        said["freeze"] = await evolve("freeze", "household", "--name", "v1", "-C", root)
        said["evaluate"] = await evolve("evaluate", "v1", "--env", "household", "-C", root)
        said["report"] = await evolve("report", "-C", root)
        return said, endpoint


@pytest.fixture(scope="module")
def travelled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], Endpoint]:
    """Go the whole way once."""
    root = tmp_path_factory.mktemp("journey") / "desk"
    said, endpoint = asyncio.run(travel(root))
    return root, said, endpoint


def test_a_users_own_model_goes_the_whole_way(travelled) -> None:
    """From what `init` writes to a version that is better on held-out tasks; git sees the edits and no more."""
    root, said, endpoint = travelled
    base, frozen = (said["evaluate"][arm]["successes"] for arm in ("base", "frozen"))
    assert base < frozen
    assert {body["model"] for body in endpoint.bodies} == {"mine"}
    assert git(root, "status", "--short").split() == ["M", "evolve.toml"]


def test_the_key_goes_to_the_endpoint_and_nowhere_else(travelled) -> None:
    """Each request carries it; of all files of the workspace `.env` alone holds it, and no commit does."""
    root, _, endpoint = travelled
    assert {headers["Authorization"] for headers in endpoint.headers} == {f"Bearer {KEY}"}
    files = [path for path in root.rglob("*") if path.is_file()]
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == [".env"]
    commits = git(root, "log", "--all", "--patch", "--format=fuller")
    assert "Evolve-Verdict: accept" in commits
    assert KEY not in commits
