"""The words of the household: what things are called and what can be done with them. Order matters: see `fold`."""

from collections.abc import Mapping
from types import MappingProxyType

FOOD = ("apple", "potato", "tomato", "egg", "bun", "carrot")
CROCKERY = ("mug", "bowl", "plate", "pan", "kettle")
CUTLERY = ("fork", "spoon", "knife", "ladle")
TRINKETS = ("book", "pen", "watch", "key", "vase", "coin", "letter", "phone", "photo", "ring", "pillow", "cd")

OBJECTS = FOOD + CROCKERY + CUTLERY + TRINKETS
LAMPS = ("desklamp", "nightlamp", "lantern")
SURFACES = ("table", "counter", "desk", "shelf", "sofa", "bed", "bench", "rack")
CONTAINERS = ("drawer", "cabinet", "chest", "box", "locker", "wardrobe")
APPLIANCES = ("sink", "microwave", "fridge")

PLACES = SURFACES + CONTAINERS + LAMPS
"""What a goal can name beside an object: where to put it, or the lamp to look at it under."""

OPENABLE = frozenset((*CONTAINERS, "microwave", "fridge"))

TREATABLE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "sink": FOOD + CROCKERY + CUTLERY,
        "microwave": FOOD + CROCKERY,
        "fridge": FOOD + CROCKERY,
    }
)
"""What each appliance takes."""

TREATMENTS: Mapping[str, str] = MappingProxyType({"sink": "clean", "microwave": "heat", "fridge": "cool"})
"""The verb of each appliance."""

FOLDS = 5


def kind_of(name: str) -> str:
    """Return the kind of a numbered name: `mug` of `mug 2`."""
    return name.rsplit(" ", 1)[0]


def article(noun: str) -> str:
    """Return the noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def plural(noun: str) -> str:
    """Return the plural of an object's kind."""
    irregular = {"potato": "potatoes", "tomato": "tomatoes", "knife": "knives", "watch": "watches"}
    return irregular.get(noun, f"{noun}s")


def fold(obj: str, place: str) -> int:
    """Return the fold (0 to 4) that a pair of object and place belongs to.

    Splits take whole folds, so no pair is shared by two splits while each word occurs in all of them.
    """
    return (OBJECTS.index(obj) + 2 * PLACES.index(place)) % FOLDS
