"""Where each value of the configuration comes from, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolve.config import Told, flat_values, load_config
from evolve.dotted import assignments
from evolve.environments.household import create
from evolve.errors import ConfigError
from evolve.records import Split


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace that sets the number of iterations."""
    (tmp_path / "evolve.toml").write_text("iterations = 2\n[rollout]\nconcurrency = 2\n")
    return tmp_path


def test_stronger_sources_win_and_are_named(folder: Path) -> None:
    """A flag outranks --set, which outranks the environment, a --config file, evolve.toml and the default."""
    more = folder / "more.toml"
    more.write_text("iterations = 3\n")
    layers = {
        str(folder / "evolve.toml"): {},
        str(more): {"file": more},
        "EVOLVE_ITERATIONS": {"environ": {"EVOLVE_ITERATIONS": "4"}},
        "--set": {"assignments": ("iterations=5",)},
        "flag": {"flags": {"iterations": 6}},
    }
    given: dict[str, object] = {}
    for expected, (source, layer) in enumerate(layers.items(), start=2):
        given |= layer
        loaded = load_config(folder, **given)  # type: ignore[arg-type]
        assert (loaded.config.iterations, loaded.sources["iterations"]) == (expected, source)
    assert load_config(None).config.iterations == 5
    assert "iterations" not in load_config(None).sources


def test_a_file_that_is_told_is_that_of_this_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--set and --config name it from the root, and so it is kept; what evolve.toml says stays as it was written."""
    monkeypatch.chdir(folder)
    Path("evolve.toml").write_text('[model]\nchat_template = "theirs.jinja"\n')
    Path("more.toml").write_text('[model]\npath = "a/model.gguf"\nrecording = "shipped:household"\n')
    loaded = load_config(folder, file=Path("more.toml"), assignments=("model.script=x", "proposer.agents_file=~/y"))
    assert loaded.told.file == {"model.path": str(folder / "a/model.gguf"), "model.recording": "shipped:household"}
    assert loaded.told.line == {"model.script": str(folder / "x"), "proposer.agents_file": "~/y"}
    assert loaded.config.model.chat_template == Path("theirs.jinja")


def test_what_a_run_was_told_is_kept_and_what_is_told_now_outranks_it(folder: Path) -> None:
    """Flags and --set count anew, key by key also where they were tables; variables may change in between."""
    told = load_config(
        folder,
        environ={"EVOLVE_ITERATIONS": "4", "EVOLVE_ROLLOUT__RETRIES": "1"},
        assignments=("gate={screen_tasks=5, max_trials=7}", "environments.household.day=2024-01-02"),
        flags={"budget.tokens": 900},
    ).told
    line = {"gate.screen_tasks": 5, "gate.max_trials": 7, "environments.household.day": "2024-01-02"}
    assert told == Told(line={**line, "budget.tokens": 900})
    again = load_config(folder, environ={"EVOLVE_GATE__SCREEN_TASKS": "6"}, before=told)
    assert (again.config.gate.max_trials, again.config.gate.screen_tasks) == (7, 5)
    assert again.told == told
    now = load_config(folder, assignments=("gate={screen_tasks=8}", "budget.tokens="), before=told)
    assert (now.config.gate.screen_tasks, now.config.gate.max_trials, now.config.budget.tokens) == (8, 7, None)
    assert now.told.line["gate.screen_tasks"] == 8


def test_a_config_file_takes_the_place_of_the_one_before(folder: Path) -> None:
    """What the new one does not say is not told any more; without a new one the old values count, below variables."""
    more = folder / "more.toml"
    more.write_text("iterations = 3\n[gate]\nmax_trials = 7\n")
    told = load_config(folder, file=more).told
    assert told == Told(file={"iterations": 3, "gate.max_trials": 7})
    again = load_config(folder, environ={"EVOLVE_ITERATIONS": "4"}, before=told)
    assert (again.config.iterations, again.config.gate.max_trials) == (4, 7)
    more.write_text("[budget]\ntokens = 700\n")
    by_line = load_config(folder, flags={"budget.tokens": 300}).told
    assert load_config(folder, file=more, before=by_line).config.budget.tokens == 700  # it is told now
    renewed = load_config(folder, file=more, before=told)
    assert renewed.config.gate.max_trials == load_config(None).config.gate.max_trials
    assert renewed.told == Told(file={"budget.tokens": 700})


@pytest.mark.parametrize("spelling", ["ledger.url='{}'", "ledger={{url='{}'}}"])
def test_where_the_ledger_is_is_never_kept(folder: Path, spelling: str) -> None:
    """Its URL may hold a password: however it is told, it counts and is not among what is kept."""
    url = "postgresql://me:hunter2@db/x"
    more = folder / "more.toml"
    more.write_text(f"[ledger]\nurl = '{url}'\n")
    for loaded in (load_config(folder, assignments=(spelling.format(url),)), load_config(folder, file=more)):
        assert loaded.config.ledger.url == url
        assert "hunter2" not in repr(loaded.told)


def test_a_key_with_a_dot_stays_one_key(folder: Path) -> None:
    """A table of the user's own, with names that evolve does not know, reaches the endpoint as it was written."""
    body = {"a.b": 1, "c": {"d": 2}}
    loaded = load_config(folder, assignments=('model.extra_body={"a.b"=1, c={d=2}}',))
    assert loaded.config.model.extra_body == body
    assert load_config(folder, before=loaded.told).config.model.extra_body == body


@pytest.mark.parametrize("kept", [{"budget.tokens": 5}, {"file": {}, "line": "x"}, "x", None])
def test_options_that_evolve_did_not_write_are_refused(kept: object) -> None:
    """A damaged row is no reason to go on without a limit."""
    assert Told.of({}) == Told()
    with pytest.raises(ConfigError, match="start a new run"):
        Told.of(kept)


def test_some_sections_can_be_read_where_others_are_not_valid(folder: Path) -> None:
    """What finds a run does not depend on what the run needs."""
    wrong = ("model.price.prompt=1.0", "ledger.url=sqlite:///x")
    with pytest.raises(ConfigError, match=r"model\.price"):
        load_config(folder, assignments=wrong)
    assert load_config(folder, assignments=wrong, only=("ledger",)).config.ledger.url == "sqlite:///x"


def test_a_flag_that_is_not_given_changes_nothing(folder: Path) -> None:
    """None is no value."""
    assert load_config(folder, flags={"iterations": None}).config.iterations == 2


def test_values_are_toml_and_bare_words_are_texts() -> None:
    """Numbers, lists and tables are read as such; a word needs no quotes."""
    texts = ("model.id=qwen", "model.temperature=0.5", 'harness.off=["skill"]', "environments.household={train=20}")
    config = load_config(None, assignments=texts).config
    assert (config.model.id, config.model.temperature, config.harness.off) == ("qwen", 0.5, ("skill",))
    assert config.environments == {"household": {"train": 20}}


UNSET = ("temperature", "top_p", "seed", "api_key_env")


@pytest.mark.parametrize("name", UNSET)
def test_an_empty_text_is_not_set_from_every_source(tmp_path: Path, name: str) -> None:
    """A file, a variable and --set can each say that a key with a default is not set."""
    (tmp_path / "evolve.toml").write_text(f'[model]\n{name} = ""\n')
    told = (
        load_config(tmp_path),
        load_config(None, environ={f"EVOLVE_MODEL__{name.upper()}": ""}),
        load_config(None, assignments=(f"model.{name}=",)),
    )
    assert [getattr(one.config.model, name) for one in told] == [None] * 3
    assert all(f"model.{name}" in one.sources for one in told)
    assert getattr(load_config(None).config.model, name) is not None


def test_an_empty_text_reaches_every_depth_and_no_other_kind_of_key(tmp_path: Path) -> None:
    """Tables within tables can be not set; a text stays a text, and a number that must be there is missed."""
    (tmp_path / "evolve.toml").write_text('[proposer.model]\nid = "m"\nprice = ""\n[environments.own]\nword = ""\n')
    config = load_config(tmp_path, assignments=("budget.usd=", "proposer.model.seed=")).config
    assert config.proposer.model is not None
    assert (config.proposer.model.price, config.proposer.model.seed, config.budget.usd) == (None, None, None)
    assert config.environments == {"own": {"word": ""}}
    assert load_config(tmp_path, assignments=("proposer.model=",)).config.proposer.model is None
    assert load_config(None, assignments=("ledger.url=",)).config.ledger.url == ""
    with pytest.raises(ConfigError, match=r"iterations \(from --set\)"):
        load_config(None, assignments=("iterations=",))


def test_values_written_as_assignments_are_read_as_they_were() -> None:
    """What a message tells can be given to --set."""
    options = {"train": 20, "day": "2024-01-02", "word": "true", "plain": "valid_train", "on": True, "few": [1, "a"]}
    options |= {"dotted": {"a.b": "é", "c": {"d": 1.5}}, "inner": {"x": "5"}, "none": {}}
    told = tuple(assignments({"environments": {"own": options}}))
    assert "environments.own.plain=valid_train" in told
    assert load_config(None, assignments=told).config.environments == {"own": options}


def test_variables_reach_nested_keys_and_others_are_left_alone() -> None:
    """Two underscores are a dot; a variable that names no section is somebody else's."""
    environ = {"EVOLVE_MODEL__BASE_URL": "http://host/v1", "EVOLVE_HOME": "/x", "MODEL__ID": "no"}
    loaded = load_config(None, environ=environ)
    assert loaded.config.model.base_url == "http://host/v1"
    assert set(loaded.sources) == {"model.base_url"}


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("iterations=0", "iterations (from --set)"),
        ("iterations=many", "iterations (from --set)"),
        ("rollout.concurency=4", "rollout.concurency (from --set)"),
        ("proposer.kind=wizard", "proposer.kind (from --set)"),
        ("harness.cap=all", "harness.cap (from --set)"),
        ('harness.off=["nope"]', "harness.off (from --set): 'nope' is neither a layer (contract, skill, "),
        ('harness.off=["skill", "skills.x"]', "'skills.x' is neither a layer"),
        ('harness.off=["skill.X"]', "'skill.X' is neither a layer"),
        ("iterations", "must look like key.path=value"),
        ("=3", "must look like key.path=value"),
        ("model.base_url=https://me:secret@host/v1", "model.base_url (from --set)"),
        ("budget.usd=inf", "budget.usd (from --set)"),
        ("model.temperature=nan", "model.temperature (from --set)"),
        ("model.extra_body.min_p=nan", "model.extra_body.min_p (from --set)"),
        ("environments.mine.sizes=[1, inf]", "environments.mine.sizes (from --set)"),
        ("model.id=a\udcffb", "no UTF-8"),
    ],
)
def test_a_wrong_value_is_named_with_its_source(assignment: str, words: str) -> None:
    """The message says which key is wrong and who set it."""
    with pytest.raises(ConfigError) as caught:
        load_config(None, assignments=(assignment,))
    assert words in str(caught.value)


@pytest.mark.parametrize("url", ["garbage", "/srv/ledger.sqlite", "mysql://a", "postgresqls://me:hush@host/x", "://"])
def test_a_ledger_elsewhere_is_sqlite_or_postgresql(url: str) -> None:
    """All else is refused with what is allowed; what was written is not told, for it may hold a password."""
    for good in ("", "sqlite:///x", "sqlite+pysqlite:///x", "postgresql://h/x", "postgresql+psycopg://h/x"):
        assert load_config(None, assignments=(f"ledger.url={good}",)).config.ledger.url == good
    with pytest.raises(ConfigError) as caught:
        load_config(None, assignments=(f"ledger.url={url}",))
    told = "ledger.url (from --set): leave it empty (a file of the workspace), or write sqlite:///FILE or postgresql://"
    assert str(caught.value).startswith(told)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"environ": {"EVOLVE_GATE__MAX_TRAILS": "3"}}, "gate.max_trails (from EVOLVE_GATE__MAX_TRAILS)"),
        ({"assignments": ("gate.max_trails=3",)}, "(from --set): no such key; the nearest is gate.max_trials"),
        ({"assignments": ("concurrency=3",)}, "no such key; the nearest is rollout.concurrency"),
        ({"assignments": ("rollout={concurency=4}",)}, "rollout.concurency (from --set): no such key"),
        ({"assignments": ("proposer.model.kinds=x",)}, "the nearest is proposer.model.kind"),
        ({"assignments": ("zzz=1",)}, "no such key; docs/configuration.md lists all"),
        ({"assignments": ("model.bogus=1",)}, "no such key; docs/configuration.md lists all"),
        ({"assignments": ("evaluation.trails=1",)}, "no such key; the nearest is evaluation.trials"),
        ({"assignments": ("proposer.timeout=1",)}, "no such key; the nearest is proposer.timeout_s"),
        ({"assignments": ("model.url=x",)}, "no such key; the nearest is model.base_url"),
        ({"assignments": ("modle.id=m",)}, "modle (from --set): no such key; the nearest is model"),
    ],
)
def test_an_unknown_key_is_told_with_the_nearest_one_and_who_set_it(given, words: str) -> None:
    """A slip shows in the message: the key, the variable or option it came by, and what was probably meant."""
    with pytest.raises(ConfigError) as caught:
        load_config(None, **given)
    assert words in str(caught.value)


def test_a_value_where_a_table_belongs_is_named() -> None:
    """A key below a value is an error of the source that asks for it."""
    with pytest.raises(ConfigError, match="model is a value, not a table"):
        load_config(None, assignments=("model=gpt", "model.id=gpt"))


def test_files_that_do_not_read_are_named(tmp_path: Path) -> None:
    """Broken TOML and a missing --config file are the user's errors, each with its path."""
    (tmp_path / "evolve.toml").write_text("iterations = \n")
    with pytest.raises(ConfigError, match=r"evolve\.toml is not valid TOML"):
        load_config(tmp_path)
    with pytest.raises(ConfigError, match="no such file"):
        load_config(None, file=tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match=f"--config names {tmp_path}, which is a folder"):
        load_config(None, file=tmp_path)


def test_the_digest_covers_every_value() -> None:
    """Equal configurations have equal digests, wherever their values come from; others have not."""
    one = load_config(None, assignments=("iterations=3",)).config
    assert one.digest == load_config(None, environ={"EVOLVE_ITERATIONS": "3"}).config.digest
    assert one.digest != load_config(None).config.digest


def test_every_value_can_be_shown_and_given_back() -> None:
    """The flat form names each value by its dotted key."""
    flat = flat_values(load_config(None).config)
    assert flat["rollout.retries"] == 2
    assert flat["model.kind"] == "openai"
    again = load_config(None, flags={key: value for key, value in flat.items() if value is not None})
    assert again.config == load_config(None).config


LOCAL, THREE = "model.kind=local", "rollout.concurrency=3"


@pytest.mark.parametrize(("told", "at_once"), [((), 8), ((LOCAL,), 1), ((LOCAL, THREE), 3), ((THREE,), 3)])
def test_a_local_model_plays_one_episode_at_a_time_unless_it_is_told(told: tuple[str, ...], at_once: int) -> None:
    """It answers one request after the other, and reads a prompt anew where another episode came in between."""
    assert load_config(None, assignments=told).config.concurrency == at_once


def test_options_of_an_environment_reach_it() -> None:
    """The table of an environment is what it is made with."""
    options = load_config(None, assignments=("environments.household={train=20}",)).config.environments["household"]
    assert len(create(options).tasks(Split.TRAIN)) == 20
