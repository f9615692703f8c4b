"""The whole way with the ledger in a database server, beside the same with a file."""

import shutil

import pytest

TOTALS = ("episodes", "requests", "requests_asked", "usage")


@pytest.fixture
def _ours(postgresql_url, monkeypatch):
    monkeypatch.setenv("EVOLVE_LEDGER__URL", postgresql_url)


def freeze_and_evaluate(evolve, workspace):
    config = ("-C", workspace, "--config", workspace / "my.toml")
    assert evolve("freeze", "household", "--name", "v1", *config).code == 0
    ended = evolve("evaluate", "v1", *config, "--json")
    assert ended.code == 0, ended.err
    return ended.document


def test_a_run_and_a_look_on_a_server_are_what_they_are_in_a_file(evolve, workspace, tmp_path, request):
    """Run, freeze, evaluate, list and report: the same totals and verdicts; the workspace has no ledger of its own."""
    config = ("--config", workspace / "my.toml", "--iterations", "1", "--json")
    other = shutil.copytree(workspace, tmp_path / "other")
    in_file, looked_in_file = evolve("run", "-C", other, *config).document, freeze_and_evaluate(evolve, other)
    request.getfixturevalue("_ours")
    on_server, looked = evolve("run", "-C", workspace, *config).document, freeze_and_evaluate(evolve, workspace)
    assert {key: on_server["totals"][key] for key in TOTALS} == {key: in_file["totals"][key] for key in TOTALS}
    assert [row["state"] for row in on_server["candidates"]] == [row["state"] for row in in_file["candidates"]]
    compared = ("base", "frozen", "gain", "interval", "wins", "losses")
    assert {key: looked[key] for key in compared} == {key: looked_in_file[key] for key in compared}
    (listed,) = evolve("runs", "list", "-C", workspace, "--json").document["runs"]
    assert (listed["run_id"], listed["status"]) == ("household-001", "done")
    assert evolve("report", "-C", workspace, "--json").document["run"]["run_id"] == "household-001"
    assert not list((workspace / ".evolve").glob("ledger*"))
