"""An environment as it shows itself to a run, as a document and as text. Held-out tasks are not asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from textwrap import indent

from evolve.cli.output import table
from evolve.environments.installed import make_environment
from evolve.errors import ConfigError
from evolve.figures import count
from evolve.records import Json, Split


def listed_environments(names: Iterable[str]) -> list[Json]:
    """Return the document of each environment; one that cannot be made here has its name and what it needs."""
    found: list[Json] = []
    for name in names:
        try:
            found.append({**environment_document(name), "needs": None})
        except ConfigError as error:
            found.append({"name": name, "needs": str(error)})
    return found


def listing_text(found: Sequence[Json]) -> str:
    """Return the environments as a table, and below it what the others need."""
    keys = ("name", "version", "train", "guard", "step_limit", "description")
    rows = [[one[key] for key in keys] for one in found if one["needs"] is None]
    lines = [table(("NAME", "VERSION", "TRAIN", "GUARD", "STEPS", "DESCRIPTION"), rows)]
    lines += [f"\n{one['name']} cannot be used yet: {one['needs']}" for one in found if one["needs"] is not None]
    return "\n".join(lines)


def environment_document(name: str) -> Json:
    """Return card, splits, families, tools and the opening of the first training task.

    Raises:
        ConfigError: none of that name is installed.
    """
    environment = make_environment(name, {})
    card = environment.card
    train, guard = (list(environment.tasks(split)) for split in (Split.TRAIN, Split.GUARD))
    session = environment.open(train[0], 0)
    try:
        opening, tools = session.opening, list(session.tools)
    finally:
        session.close()
    return {
        "name": card.name,
        "version": card.version,
        "description": card.description,
        "digest": card.digest,
        "step_limit": card.step_limit,
        "pass_mark": card.pass_mark,
        "train": len(train),
        "guard": len(guard),
        "heldout_commitment": environment.heldout_digest(),
        "families": dict(sorted(Counter(task.family for task in train).items())),
        "tools": [tool.model_dump(mode="json") for tool in tools],
        "opening": opening.model_dump(mode="json"),
    }


def environment_text(document: Json) -> str:
    """Return an environment's document as text."""
    tools = [
        (tool["name"], "reads" if tool["read_only"] else "acts", tool["description"]) for tool in document["tools"]
    ]
    return "\n".join(
        [
            f"{document['name']} {document['version']}: {document['description']}",
            f"  {document['train']} training and {document['guard']} guard tasks; {_heldout_words(document)}",
            f"  {count(document['step_limit'], 'step')} at most, solved at a score of {document['pass_mark']:g}",
            "",
            table(("FAMILY", "TRAINING TASKS"), document["families"].items()),
            "",
            table(("TOOL", "KIND", "DESCRIPTION"), tools),
            "",
            "The first training task opens with:",
            indent(document["opening"]["system"].strip(), "  system | ", lambda _: True),
            indent(document["opening"]["user"].strip(), "  user   | ", lambda _: True),
        ]
    )


def _heldout_words(document: Json) -> str:
    commitment = document["heldout_commitment"]
    if commitment is None:
        return "the data of the held-out ones is not on this machine"
    return f"the held-out ones are sealed (commitment {commitment[:12]})"
