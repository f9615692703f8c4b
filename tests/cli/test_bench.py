"""`evolve bench`, `evolve env new` and `evolve init --env` as one calls them."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evolve import bench
from evolve.bench import benchmark_names, find_benchmark, state_of, take_files
from evolve.environments.data import Benchmark, BenchmarkData, DataFile
from evolve.environments.os_interaction.rootfs import MARKER
from evolve.environments.os_interaction.sandbox import require_sandbox
from evolve.errors import ConfigError, EnvironmentBroken, UserError
from evolve.workspace import find_workspace

CONTENT = b"a table of 3 rows"
TABLE = DataFile("tables/dev.jsonl", "tasks", hashlib.sha256(CONTENT).hexdigest())
BENCHMARK = Benchmark(
    name="little",
    title="A little benchmark",
    environments=("little_a", "little_b"),
    licence="MIT",
    source="example @ 0000000",
    files=(
        TABLE,
        DataFile("test.jsonl", "held-out tasks", is_needed=False),
    ),
    fetch=("git clone https://example.org/little {folder}",),
    extra="little",
    modules=("no_such_module_of_ours",),
    programs=("no-such-program-of-ours",),
)


def no_sandbox() -> str:
    """Say why no sandbox of OS interaction can be had here."""
    try:
        require_sandbox()
    except ConfigError as error:
        return str(error)
    return ""


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep benchmark data in a folder of the test."""
    monkeypatch.setenv("EVOLVE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def source_with(tmp_path: Path, content: bytes) -> Path:
    source = tmp_path / "source"
    (source / "tables").mkdir(parents=True)
    (source / "tables" / "dev.jsonl").write_bytes(content)
    (source / "beside.txt").write_text("no part of it")
    return source


def test_what_is_missing_is_named_with_what_brings_it() -> None:
    """An absent file, module and program each stand in the state; nothing is ready before they are there."""
    state = state_of(BENCHMARK, {})
    assert [(file.path, file.state) for file in state.files] == [
        ("tables/dev.jsonl", "absent"),
        ("test.jsonl", "absent"),
    ]
    assert state.missing_modules == ("no_such_module_of_ours",)
    assert state.missing_programs == ("no-such-program-of-ours",)
    assert state.fetch == (f"git clone https://example.org/little {state.folder}",)
    assert not state.is_ready


def test_files_at_hand_are_taken_after_their_digest(tmp_path: Path, data_folder: Path) -> None:
    """The pinned file is copied to where the adapter reads it; what is no part of the benchmark stays behind."""
    assert take_files(BENCHMARK, source_with(tmp_path, CONTENT)) == ["tables/dev.jsonl"]
    assert BenchmarkData(BENCHMARK).read("tables/dev.jsonl") == CONTENT
    assert sorted(p.name for p in data_folder.rglob("*") if p.is_file()) == ["dev.jsonl"]


def test_files_are_taken_from_any_layout_that_is_known(tmp_path: Path, data_folder: Path) -> None:
    """What an adapter finds in a folder is taken out of it, into the benchmark's own folder."""
    nested = replace(BENCHMARK, places=lambda chosen: ((chosen or tmp_path) / "inner", chosen or tmp_path))
    (tmp_path / "checkout").mkdir()
    source_with(tmp_path, CONTENT).rename(tmp_path / "checkout" / "inner")
    assert take_files(nested, tmp_path / "checkout") == ["tables/dev.jsonl"]
    assert (data_folder / "little" / "tables" / "dev.jsonl").read_bytes() == CONTENT


def test_another_version_of_a_file_serves_where_it_is_known(tmp_path: Path) -> None:
    """A file may have one of several digests."""
    either = replace(TABLE, others=(hashlib.sha256(b"other").hexdigest(),))
    two = replace(BENCHMARK, files=(either,))
    source = source_with(tmp_path, b"other")
    assert state_of(two, {"data": source}).files[0].state == "present"
    assert BenchmarkData(two, source).read("tables/dev.jsonl") == b"other"


def test_commands_bear_a_folder_with_blanks(tmp_path: Path) -> None:
    """The folder is quoted, so that the commands can be pasted as they stand."""
    state = state_of(BENCHMARK, {"data": tmp_path / "my data"})
    assert state.fetch == (f"git clone https://example.org/little '{tmp_path}/my data'",)


def test_another_file_of_that_name_is_refused(tmp_path: Path, data_folder: Path) -> None:
    """A file with another digest is neither taken nor read, and nothing is left behind."""
    with pytest.raises(UserError, match="SHA-256 differs"):
        take_files(BENCHMARK, source_with(tmp_path, b"other"))
    assert not data_folder.exists()
    (data_folder / "little" / "tables").mkdir(parents=True)
    (data_folder / "little" / "tables" / "dev.jsonl").write_bytes(b"other")
    assert state_of(BENCHMARK, {}).files[0].state == "altered"
    with pytest.raises(ConfigError, match="evolve bench fetch little"):
        BenchmarkData(BENCHMARK).read("tables/dev.jsonl")


def test_a_folder_without_the_needed_file_is_refused(tmp_path: Path) -> None:
    """The message names the file and what is in it."""
    with pytest.raises(UserError, match=r"holds no tables/dev\.jsonl \(tasks\)"):
        take_files(BENCHMARK, tmp_path)
    (tmp_path / "tree").mkdir()
    with pytest.raises(UserError, match="holds no file that `evolve bench info little` lists"):
        take_files(replace(BENCHMARK, files=BENCHMARK.files[1:]), tmp_path)
    with pytest.raises(UserError, match="is no folder"):
        take_files(BENCHMARK, tmp_path / "nowhere")


def test_one_whole_form_of_the_data_is_enough(data_folder: Path) -> None:
    """Where data comes in forms a benchmark is ready with any one that is whole and unaltered, and not with parts."""
    forms = (("tree/*/game",), ("tables/dev.jsonl", "grammar"))
    two = replace(BENCHMARK, files=(replace(TABLE, is_needed=False),), forms=forms, modules=(), programs=())
    folder = data_folder / "little"
    assert state_of(two, {}).missing_forms == ("tree/*/game", "tables/dev.jsonl with grammar")
    for path, content, is_ready in (
        ("tree/README", b"", False),
        ("tables/dev.jsonl", CONTENT, False),
        ("grammar", b"", True),
        ("tables/dev.jsonl", b"other", False),
        ("tree/a/game", b"", True),
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
        assert state_of(two, {}).is_ready is is_ready


def test_alfworld_is_not_ready_without_games(evolve, tmp_path: Path) -> None:
    """The folders that a download made before it broke off are no games; each form that would do is named."""
    (tmp_path / "json_2.1.1" / "train").mkdir(parents=True)
    shown = evolve("bench", "info", "alfworld", "--data", tmp_path)
    assert "missing: one of json_2.1.1/train/*/*/game.tw-pddl; games_train.jsonl.xz with alfred.pddl with" in shown.out
    assert "alfworld-download" in shown.out


def test_os_interaction_is_not_ready_without_a_root_file_system(evolve, tmp_path: Path) -> None:
    """What is missing stands in text and JSON, whatever it is on this machine."""
    shown = evolve("bench", "info", "os_interaction")
    (document,) = evolve("bench", "info", "os_interaction", "--json").document["benchmarks"]
    assert document["lacks"].startswith("os_interaction")
    assert f"missing: {document['lacks']}" in shown.out
    assert not document["is_ready"]


@pytest.mark.skipif(bool(no_sandbox()), reason=no_sandbox())
def test_a_whole_root_file_system_makes_os_interaction_ready(evolve, tmp_path: Path) -> None:
    """The command that builds one is named; one that the option names is enough, and half of one is not."""
    shown = evolve("bench", "info", "os_interaction")
    assert f"no root file system in {tmp_path}" in shown.out
    assert "python -m evolve.environments.os_interaction.build" in shown.out
    folder = tmp_path / "mine"
    (folder / "root" / MARKER).parent.mkdir(parents=True)
    (folder / "root" / MARKER).write_text("mark")
    (folder / "mount").mkdir()
    (folder / "manifest.json").write_text('{"marker": "mark", "suite": "s", "packages": []}')
    benchmark = find_benchmark("os_interaction")
    assert state_of(benchmark, {"rootfs": str(folder)}).lacks == ""
    (folder / "mount").rmdir()
    assert "is not whole" in state_of(benchmark, {"rootfs": str(folder)}).lacks
    for manifest in ("[]", '{"marker": "mark"}'):
        (folder / "manifest.json").write_text(manifest)
        assert "is not whole" in state_of(benchmark, {"rootfs": str(folder)}).lacks


def test_every_benchmark_shows_itself(evolve) -> None:
    """`evolve bench info` lists each benchmark that is installed; each names a licence, a source and commands."""
    listed = evolve("bench", "info", "--json").document["benchmarks"]
    assert [one["name"] for one in listed] == benchmark_names()
    for one in listed:
        assert one["licence"]
        assert one["source"]
        assert one["fetch"], f"{one['name']} has no command that brings it"
        absent = [file["path"] for file in one["files"] if file["is_needed"] and file["state"] != "present"]
        assert not (one["is_ready"] and absent), f"{one['name']} is said to be ready without {absent}"


def test_each_benchmark_is_found_by_its_environments() -> None:
    """An environment's name finds its benchmark."""
    for name in benchmark_names():
        for environment in find_benchmark(name).environments:
            assert find_benchmark(environment).name == name


def test_an_embedded_environment_is_verified(evolve) -> None:
    """`evolve bench verify household` checks it and says what doing nothing scores."""
    found = evolve("bench", "verify", "household", "--tasks", "1", "--json").document["environments"]
    assert [(one["environment"], one["holds"], one["nothing"]["successes"]) for one in found] == [
        ("household", True, 0)
    ]


def test_an_environment_that_lacks_something_is_not_told_as_one_that_breaks_the_contract(evolve) -> None:
    """Without its data or its extra nothing is checked: the text says what lacks, JSON has null, the code is 2."""
    shown = evolve("bench", "verify", "webshop")
    assert shown.code == 2
    assert shown.out.startswith("webshop: cannot be checked\n")
    assert "does not hold" not in shown.out
    (told,) = evolve("bench", "verify", "webshop", "--json").document["environments"]
    assert (told["holds"], told["checks"]) == (None, [])
    assert told["missing"] in shown.out
    assert "evolve bench fetch webshop" in told["missing"] or "pip install" in told["missing"]


def test_an_environment_that_breaks_is_told_as_one_that_does_not_hold(evolve, monkeypatch) -> None:
    """What an environment does wrong by itself is no missing thing: exit code 1, and JSON says false."""

    def breaks(*_: object) -> None:
        raise EnvironmentBroken("it fell over")

    monkeypatch.setattr(bench, "make_environment", breaks)
    found = evolve("bench", "verify", "household", "--json")
    assert found.code == 1
    assert [(one["holds"], one["missing"]) for one in found.document["environments"]] == [(False, "")]


def test_init_takes_the_environments_that_are_named(evolve, tmp_path: Path) -> None:
    """`evolve init --env` makes a harness folder for each, and the first is the default."""
    assert evolve("init", tmp_path / "w", "--env", "service_desk", "--env", "household").code == 0
    assert sorted(os.listdir(tmp_path / "w" / "harness_artifacts")) == ["household", "service_desk"]
    assert 'environment = "service_desk"' in (find_workspace(tmp_path / "w").root / "evolve.toml").read_text()
    assert evolve("init", tmp_path / "one", "--env", "service_desk").code == 0
    shown = evolve("config", "show", "-C", tmp_path / "one", "--json")
    assert (shown.code, shown.document["values"]["environment"]["value"]) == (0, "service_desk")


def test_init_makes_the_default_environment_the_default(evolve, tmp_path: Path) -> None:
    """Without --env every environment that can be used here gets a folder, and household comes first."""
    made = evolve("init", tmp_path / "w", "--json").document["environments"]
    assert made[0] == "household"
    assert "service_desk" in made


def test_env_new_starts_an_environment(evolve, tmp_path: Path) -> None:
    """`evolve env new` writes the three files of the page."""
    taken = evolve("env", "new", "household", "--into", tmp_path / "h")
    assert (taken.code, "'household' is installed already" in taken.err) == (2, True)
    assert evolve("env", "new", "my_desk", "--into", tmp_path / "d").code == 0
    assert sorted(os.listdir(tmp_path / "d")) == ["my_desk.py", "pyproject.toml", "test_my_desk.py"]


def test_a_wrong_name_is_a_users_mistake(evolve, tmp_path: Path) -> None:
    """An environment or benchmark that is not there ends with 2 and the names that are."""
    for words in (("bench", "info", "nope"), ("bench", "fetch", "household"), ("bench", "verify", "nope")):
        ended = evolve(*words)
        assert ended.code == 2
        assert "installed are" in ended.err or "brings its own tasks" in ended.err
    ended = evolve("init", tmp_path / "w", "--env", "nope")
    assert ended.code == 2
    assert not (tmp_path / "w").exists()


@pytest.fixture
def told_workspace(evolve, tmp_path: Path) -> Path:
    """A workspace that says where the data of webshop lies."""
    workspace = tmp_path / "ws"
    evolve("init", workspace)
    with (workspace / "evolve.toml").open("a") as configuration:
        configuration.write('\n[environments.webshop]\ndata = "in-the-table"\n')
    return workspace


def test_a_workspace_says_where_a_benchmark_lies(evolve, tmp_path: Path, told_workspace: Path) -> None:
    """The table of the environment counts in info; --set and --data outrank it."""
    workspace = told_workspace

    def folder(*words: object) -> str:
        return evolve("bench", "info", "webshop", "--json", *words).document["benchmarks"][0]["folder"]

    assert folder("-C", workspace) == "in-the-table"
    assert folder("-C", workspace, "--set", "environments.webshop.data=set") == "set"
    assert folder("-C", workspace, "--set", "environments.webshop.data=set", "--data", "given") == "given"
    assert folder("--set", "environments.webshop.data=set") == "set"
    assert "not in an evolve workspace" in evolve("bench", "info", "-C", tmp_path).err


def test_a_benchmark_is_verified_where_the_workspace_says_it_lies(evolve, told_workspace: Path) -> None:
    """What is missing is missing there."""
    pytest.importorskip("nltk", reason="the extra webshop is not installed")
    assert "in-the-table" in evolve("bench", "verify", "webshop", "-C", told_workspace).out


def test_a_folder_that_may_not_be_read_holds_no_files(tmp_path: Path) -> None:
    """Nothing of a benchmark is there for a user who may not look, and that is said like any other absence."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    script = (
        "import os\n"
        "from evolve.bench import benchmark_names, find_benchmark, state_of\n"
        "found = [find_benchmark(name) for name in benchmark_names()]\n"
        "as_root = [state_of(one, {}) for one in found]  # imports what the other user may not read\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "print(*(one.name for one in found if state_of(one, {}).is_ready))"
    )
    environ = {**os.environ, "EVOLVE_DATA": str(home / "data")}
    ran = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=False)
    assert (set(ran.stdout.split()) - {"tau2"}, ran.stderr) == (set(), ""), "tau2 may bring its data in its package"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return what installs a package with one environment, as pip would."""

    def install(module: str, name: str, code: str) -> None:
        (tmp_path / f"{module}.py").write_text(code)
        known = tmp_path / f"{module}-1.0.dist-info"
        known.mkdir()
        (known / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (known / "entry_points.txt").write_text(f"[evolve.environments]\n{name} = {module}:create\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, module, raising=False)

    return install


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise RuntimeError('oops')\n", "RuntimeError: oops"),
        ("def make(options): ...\n", "AttributeError"),
        ("def create(options):\n    return options['size']\n", "KeyError: 'size'"),
    ],
)
def test_an_environment_that_does_not_load_is_its_own_fault_alone(evolve, installed, tmp_path, code: str, words: str):
    """The others are listed, made and checked as ever; it is told where it lies, and not as a fault of evolve."""
    installed("broken_desk", "broken_desk", code)
    listed = evolve("env", "list")
    assert (listed.code, "broken_desk:create" in listed.out, words in listed.out) == (0, True, True)
    assert "household" in listed.out
    assert evolve("init", tmp_path / "ws").code == 0
    checked = evolve("bench", "verify", "broken_desk")
    assert (checked.code, words in checked.out, "fault of evolve" in checked.out + checked.err) == (2, True, False)
    found = {one["name"]: one for one in evolve("doctor", "-C", tmp_path / "ws", "--json").document["findings"]}
    assert words in found["environment broken_desk"]["detail"]
    assert found["environment household"]["status"] == "ok"


def test_two_packages_with_one_environment_are_told(evolve, installed):
    """Neither is taken in silence: which one would answer is no matter of chance."""
    installed("other_house", "household", "def create(options): ...\n")
    listed = evolve("env", "list").out
    assert "'household' is given by evolve.environments" in listed
    assert "other_house:create" in listed
