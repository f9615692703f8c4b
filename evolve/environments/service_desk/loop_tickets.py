"""The training and guard tickets: their pools and how many. Knows nothing of the held-out side."""

from __future__ import annotations

from evolve.environments.service_desk.cases import Case, number
from evolve.environments.service_desk.content import Pool
from evolve.environments.service_desk.families import write_tickets
from evolve.records import LoopSplit, Split

TRAIN = Pool(
    seed=4101,
    ids=range(1000, 4000),
    residue=1,
    fee_residue=3,
    host="post.example",
    first_names=("Mara", "Jonas", "Ines", "Pavel", "Oda", "Ruben", "Tilda", "Emil", "Noor", "Silas", "Greta", "Hugo"),
    last_names=("Lind", "Okafor", "Brandt", "Serra", "Novak", "Haim", "Tromp", "Weil", "Duarte", "Kessel", "Ahmadi"),
    goods=("kettle", "desk lamp", "tea set", "wall clock", "toaster", "bread bin", "garden hose", "yoga mat", "kite"),
    clothes=("wool jacket", "rain coat", "linen shirt", "denim skirt"),
    streets=("Mill Lane", "Harbour Road", "Cedar Street", "Abbey Walk", "Station Road"),
    towns=("Harrow 4410", "Dunwick 2207", "Elmsby 3318", "Corran 5102"),
)
GUARD = Pool(
    seed=4102,
    ids=range(4000, 6000),
    residue=4,
    fee_residue=7,
    host="mail.example",
    first_names=("Lotte", "Amir", "Bea", "Casper", "Dina", "Farid", "Hedda", "Ivo", "Katya", "Leon"),
    last_names=("Moreau", "Nilsen", "Otieno", "Prins", "Quist", "Rocha", "Sandoz", "Thoma", "Urban", "Vance"),
    goods=("coffee mill", "floor rug", "bird feeder", "picture frame", "camp stove", "flute", "paint box", "sled"),
    clothes=("fleece vest", "silk blouse", "cargo trousers", "knit dress"),
    streets=("Orchard Way", "Bridge Street", "Foundry Lane", "Quarry Hill"),
    towns=("Felden 6621", "Garrick 6714", "Hollin 7035"),
)
POOLS = {Split.TRAIN: (TRAIN, 5), Split.GUARD: (GUARD, 2)}


def loop_cases(split: LoopSplit) -> tuple[Case, ...]:
    """Write all cases of the training or guard split."""
    pool, rounds = POOLS[split]
    return number(split, write_tickets(pool, rounds))
