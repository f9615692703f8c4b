"""The held-out tickets. Only the environment (`open`, `heldout_tasks`, digests) and the tests import this."""

from __future__ import annotations

from dataclasses import replace

from evolve.environments.service_desk.cases import Case, number
from evolve.environments.service_desk.content import Pool
from evolve.environments.service_desk.families import write_tickets
from evolve.records import Split

CANARY = "sd-canary-7f1c93e0b86d4a52"
ROUNDS = 4
HELDOUT = Pool(
    seed=4103,
    ids=range(6000, 10000),
    residue=5,
    fee_residue=11,
    host="inbox.example",
    first_names=(
        "Wanda",
        "Yusuf",
        "Zora",
        "Arne",
        "Birte",
        "Cyril",
        "Delia",
        "Egon",
        "Fenna",
        "Goran",
        "Hilda",
        "Jiri",
    ),
    last_names=("Abel", "Bastos", "Corvin", "Dahl", "Eriksen", "Fabre", "Gomez", "Hartog", "Ilves", "Jansky", "Koller"),
    goods=("rice cooker", "night light", "chess set", "alarm clock", "blender", "spice rack", "rake", "tent", "drum"),
    clothes=("parka", "polo shirt", "corduroy suit", "cotton robe"),
    streets=("Willow Court", "Market Row", "Chapel Street", "Ferry Road", "Tannery Way"),
    towns=("Ickwell 8120", "Jarrow 8433", "Kelby 9051", "Lorne 9276"),
)


def heldout_cases() -> tuple[Case, ...]:
    """Write all held-out cases; the canary stands in each gold and nowhere that an agent can see."""
    drafts = [replace(d, gold=replace(d.gold, mark=CANARY)) for d in write_tickets(HELDOUT, ROUNDS)]
    return number(Split.HELDOUT, drafts)
