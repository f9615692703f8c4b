"""One goal being shopped for: calls to upstream's actions, pages to observations in AgentBench's wording."""

from __future__ import annotations

from collections.abc import Sequence

from evolve.environments.webshop.catalogue import Catalogue, Product
from evolve.environments.webshop.goals import Goal
from evolve.environments.webshop.pages import Page
from evolve.environments.webshop.scoring import Scorer
from evolve.environments.webshop.visit import Visit
from evolve.records import Call, ErrorKind, Observation, Opening, Score, Tool

SYSTEM = (
    "You are web shopping: an instruction says what to buy, within a price where it names one. "
    "Each turn you see an observation, the page you are on, and the available actions: whether it has a search bar, "
    "and its clickables. Answer each turn with one call of a tool.\n"
    "Search where a search bar is available; the keywords are up to you, so choose them with care. "
    "What you click must be one of the clickables, as it is written there. An action that is not valid does nothing.\n"
    "On a product's page choose the options that the instruction asks for, one click each, then click buy now: "
    "buying ends the task. You need nobody's permission, and nobody answers questions."
)
TOOLS = (
    Tool(
        name="search_action",
        description="Search the shop's products.",
        parameters={
            "type": "object",
            "properties": {"keywords": {"type": "string", "description": "What to search for."}},
            "required": ["keywords"],
            "additionalProperties": False,
        },
    ),
    Tool(
        name="click_action",
        description="Click a button, a link or an option of the page.",
        parameters={
            "type": "object",
            "properties": {"value": {"type": "string", "description": "One of the clickables."}},
            "required": ["value"],
            "additionalProperties": False,
        },
    ),
)
ACTIONS = {"search_action": ("search", "keywords"), "click_action": ("click", "value")}
"""Upstream's verb and the one argument, by tool."""
NO_CALL = "No executable tool calls found! You should call a tool instead."
NO_ARGUMENT = "No valid tool call found from agent."
NOTHING_READ_ONLY = "Every action turns a page; nothing here is read-only."


class ShoppingSession:
    """A session on one goal. Catalogue and scorer are shared, the visit is its own."""

    def __init__(self, goal: Goal, catalogue: Catalogue, scorer: Scorer) -> None:
        self._goal = goal
        self._scorer = scorer
        self._visit = Visit(catalogue, goal.instruction, self._reward)
        page = self._visit.page
        self._opening = Opening(
            system=SYSTEM, user=f"The initial observation:\n{_shown(page)}", admissible=page.clickables
        )

    @property
    def opening(self) -> Opening:
        """The instruction and the page with the search bar."""
        return self._opening

    @property
    def tools(self) -> Sequence[Tool]:
        """Search and click."""
        return TOOLS

    def step(self, call: Call) -> Observation:
        """Do a call. As in AgentBench a value that is no text counts as its text; what fits nothing does nothing."""
        action = ACTIONS.get(call.tool)
        if action is None:
            return self._observe(f"Observation:\n{_shown(self._visit.page)}", ErrorKind.UNKNOWN_TOOL)
        verb, argument = action
        if argument not in call.arguments:
            words = f"{NO_ARGUMENT}\n\nObservation:\n{_shown(self._visit.page)}"
            return self._observe(words, ErrorKind.INVALID_ARGS)
        done = f"{verb}[{call.arguments[argument]}]"
        has_effect = self._visit.act(done)
        words = f"Action: {done}\n\nObservation:\n{_shown(self._visit.page)}"
        return self._observe(words, None if has_effect else ErrorKind.NO_EFFECT)

    def say(self, text: str) -> Observation:
        """Take a plain message, which nobody reads."""
        return self._observe(f"Observation:\n{NO_CALL}{_available(self._visit.page)}", ErrorKind.MALFORMED_CALL)

    def probe(self, call: Call) -> Observation:
        """Refuse: no action leaves the visit as it is."""
        return self._observe(NOTHING_READ_ONLY, ErrorKind.REJECTED)

    def score(self) -> Score:
        """Score what was bought."""
        bought = self._visit.purchase
        if bought is None:
            return self._scorer.nothing_bought()
        return self._scorer.score(self._goal, bought.product, bought.options)

    def close(self) -> None:
        """Release nothing: a session is memory only."""

    def _reward(self, product: Product, options: dict[str, str]) -> float:
        return self._scorer.score(self._goal, product, options).value

    def _observe(self, words: str, kind: ErrorKind | None) -> Observation:
        page = self._visit.page
        return Observation(text=words, error_kind=kind, done=page.kind == "done", admissible=page.clickables)


def _shown(page: Page) -> str:
    return f"{page.text}{_available(page)}"


def _available(page: Page) -> str:
    return f"\n\nAvailable Actions:\n{page.available}"
