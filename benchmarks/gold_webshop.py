"""WebShop held against its records: recorded episodes page by page, reference searches, purchases of the open goals.

    python benchmarks/gold_webshop.py FOLDER

FOLDER holds the files of `evolve bench info webshop`. Prints one JSON document; ends with 1 where something differs.
"""

from __future__ import annotations

import gzip
import resource
import sys
import time
from collections.abc import Iterator
from statistics import mean, median
from typing import Any

import orjson

from evolve.environments.data import BenchmarkData
from evolve.environments.webshop import create
from evolve.environments.webshop.analysis import Analyser
from evolve.environments.webshop.benchmark import BENCHMARK, EPISODES, GOALS, PRODUCTS, REFERENCE, TOKENS
from evolve.environments.webshop.catalogue import Catalogue
from evolve.environments.webshop.goals import Goal, read_goals
from evolve.environments.webshop.scoring import Scorer
from evolve.environments.webshop.search import Index
from evolve.environments.webshop.session import ACTIONS, ShoppingSession
from evolve.environments.webshop.titles import create_subjects
from evolve.environments.webshop.visit import ACTION
from evolve.errors import ConfigError
from evolve.records import Call, Observation, Score, Split

TOOLS = {verb: (tool, argument) for tool, (verb, argument) in ACTIONS.items()}


def lines(content: bytes) -> list[Any]:
    return [orjson.loads(line) for line in gzip.decompress(content).splitlines()]


def shown(step: Any) -> str:
    """What AgentBench would show of a recorded page."""
    return f"{step['observation']}\n\nAvailable Actions:\n{step['available']}"


def replay(session: ShoppingSession, steps: list[Any]) -> Iterator[tuple[bool, bool]]:
    """Do the recorded actions; yield for each whether page with actions, and reward with end, are those recorded."""
    first, *rest = steps
    yield session.opening.user == f"The initial observation:\n{shown(first)}", True
    for step in rest:
        read = ACTION.match(step["action"])
        if read:
            tool, argument = TOOLS[read[1]]
            seen = session.step(Call(tool=tool, arguments={argument: read[2]}))
            words = f"Action: {step['action']}\n\nObservation:\n{shown(step)}"
        else:  # recorded as neither search nor click: the page stays
            seen = session.step(Call(tool=step["action"], arguments={}))
            words = f"Observation:\n{shown(step)}"
        is_same_page = seen.text == words and list(seen.admissible or ()) == step["available"]["clickables"]
        yield is_same_page, (session.score().value, seen.done) == (step["reward"], step["done"])


def parts_agree(score: Score, recorded: dict[str, Any]) -> bool:
    return score.parts == {name: float(value) for name, value in recorded.items()}


def episodes(catalogue: Catalogue, scorer: Scorer, recorded: list[Any]) -> dict[str, Any]:
    counts = {"episodes": len(recorded), "pages": 0, "same_pages": 0, "same_rewards": 0, "same_parts": 0}
    for episode in recorded:
        session = ShoppingSession(Goal.read(episode["goal_index"], episode["goal"]), catalogue, scorer)
        outcomes = list(replay(session, episode["steps"]))
        counts["pages"] += len(outcomes)
        counts["same_pages"] += sum(page for page, _ in outcomes)
        counts["same_rewards"] += sum(reward for _, reward in outcomes)
        counts["same_parts"] += parts_agree(session.score(), episode["reward_info"])
    return counts


def searches(index: Index, analyser: Analyser, recorded: list[Any]) -> dict[str, Any]:
    counts = {"searches": len(recorded), "same_words": 0, "same_first": 0, "same_page": 0, "same_50_with_scores": 0}
    took = []
    for search in recorded:
        started = time.perf_counter()
        words = analyser.words(search["query"])
        hits = index.search(words, 50)
        took.append(time.perf_counter() - started)
        ours, theirs = [asin for asin, _ in hits], [asin for asin, _ in search["top"]]
        is_scored_alike = [round(score, 4) for _, score in hits] == [round(score, 4) for _, score in search["top"]]
        counts["same_words"] += words == search["tokens"].split()
        counts["same_first"] += ours[:1] == theirs[:1]
        counts["same_page"] += ours[:10] == theirs[:10]
        counts["same_50_with_scores"] += ours == theirs and is_scored_alike
    return counts | {"median_ms": round(median(took) * 1000, 2)}


def bought(session: ShoppingSession, goal: Goal) -> Observation:
    """Find a goal's product by its title, choose its options, buy it."""
    clicks = [goal.asin, *(value for _, value in goal.options), "buy now"]  # type: ignore[misc]
    session.step(Call(tool="search_action", arguments={"keywords": goal.title.replace("[", " ").replace("]", " ")}))
    while goal.asin.lower() not in (seen := session.say("")).admissible and "next >" in seen.admissible:  # type: ignore
        session.step(Call(tool="click_action", arguments={"value": "next >"}))
    for value in clicks:
        seen = session.step(Call(tool="click_action", arguments={"value": value}))
    return seen


def purchases(catalogue: Catalogue, scorer: Scorer, goals: list[Goal]) -> dict[str, Any]:
    values, took = [], []
    for goal in goals:
        session = ShoppingSession(goal, catalogue, scorer)
        started = time.perf_counter()
        bought(session, goal)
        took.append(time.perf_counter() - started)
        values.append(session.score().value)
    is_whole = [value == 1 for value in values]
    return {
        "goals": len(goals),
        "exactly_1": sum(is_whole),
        "mean": round(mean(values), 4),
        "median_ms_per_episode": round(median(took) * 1000, 1),
    }


def do_nothing(folder: str, titles: str) -> float:
    environment = create({"data": folder, "titles": titles})
    tasks = [task for split in (Split.TRAIN, Split.GUARD) for task in environment.tasks(split)]
    return mean(environment.open(task, 0).score().value for task in tasks)


def main(folder: str) -> int:
    data = BenchmarkData(BENCHMARK, folder)
    started = time.perf_counter()
    catalogue = Catalogue(data.read(PRODUCTS), source=PRODUCTS)
    built_s = time.perf_counter() - started
    analyser = Analyser()
    documents = [orjson.loads(line) for line in data.read(PRODUCTS).splitlines()]
    own = {document["id"]: analyser.words(document["contents"]) for document in documents}
    theirs = {asin: words.split() for asin, words in orjson.loads(data.read(TOKENS)).items()}
    recorded, reference = lines(data.read(EPISODES)), lines(data.read(REFERENCE))
    goals = [goal for goal in read_goals(data.read(GOALS), source=GOALS) if goal.index >= 1500][::27]
    report: dict[str, Any] = {
        "catalogue_s": round(built_s, 2),
        "same_product_words": sum(own[asin] == theirs[asin] for asin in theirs),
        "searches_own_words": searches(Index(own), analyser, reference),
        "searches_token_file": searches(Index(theirs), analyser, reference),
    }
    for titles in ("words", "nouns"):
        try:
            scorer = Scorer(create_subjects(titles))
        except ConfigError as error:  # without the extra webshop-nouns
            report[f"titles_{titles}"] = {"left_out": str(error)}
            continue
        report[f"titles_{titles}"] = {
            "scorer": scorer.version,
            "recorded": episodes(catalogue, scorer, recorded),
            "purchases": purchases(catalogue, scorer, goals),
            "do_nothing": do_nothing(folder, titles),
        }
    report["peak_memory_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
    pages, found = report["titles_nouns"].get("recorded"), report["searches_own_words"]
    differ = pages is not None and pages["pages"] != pages["same_pages"]
    return int(differ or found["same_page"] != found["searches"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
