"""Where ALFWorld's games come from, and the two forms in which they are read."""

from evolve.environments.data import Benchmark, DataFile

NAME = "alfworld"
DOMAIN = "alfred.pddl"
GRAMMAR = "alfred_grammar_template.twl2"
TREE = "json_2.1.1"
"""The folder that alfworld-download makes: SPLIT/KIND/TRIAL/game.tw-pddl below it."""
GAME_FILE = "game.tw-pddl"
GAMES = f"*/*/{GAME_FILE}"
"""Where games stand below the folder of a split."""

LOOP_SPLITS = ("train", "valid_train", "valid_seen")
HELDOUT_SPLIT = "valid_unseen"


def compact(split: str) -> str:
    """Return the name of the file that holds an official split in compact form."""
    return f"games_{split}.jsonl.xz"


BENCHMARK = Benchmark(
    name=NAME,
    title="ALFWorld text games",
    environments=(NAME,),
    licence="MIT (games, alfworld, textworld); GPL-2.0 (jericho) and GPL-3.0 (fast-downward) beneath textworld",
    source="https://github.com/alfworld/alfworld, package 0.4.2, games 2.1.1",
    files=(
        DataFile(
            DOMAIN,
            "the domain that all compact games share",
            "0af55e7f92d12b09d28515aa730e4d03fddd17228ef1fd7b18a3ee8ba49b27b9",
            is_needed=False,
        ),
        DataFile(
            GRAMMAR,
            "the grammar that all compact games share but for the task sentence",
            "d2474cef81364e51424322cebb974b667724bedda6f772753ac61bdcd043de75",
            is_needed=False,
        ),
        DataFile(
            compact("train"),
            "the 3,553 training games, compact",
            "def03b6e505d9ee9c049ccb0a82da49997aa7ca10d3293a5f36584f2354e86ba",
            is_needed=False,
        ),
        DataFile(
            compact("valid_train"),
            "200 more games of the training kind, compact",
            "455f2a5c03e2aec3a87647744708ac77f53115bace49976b2a5f3fc6d7e2eb42",
            is_needed=False,
        ),
        DataFile(
            compact("valid_seen"),
            "140 games in rooms seen in training, compact",
            "3dd1fd58bfb56ab15c485b93d94f9ba4318ff749a4e9e099102c5a48eaeb1d1a",
            is_needed=False,
        ),
        DataFile(compact(HELDOUT_SPLIT), "the 134 held-out games, compact", is_needed=False),
    ),
    fetch=(
        "pip install 'evolve-harness[alfworld]'",
        "ALFWORLD_DATA={folder} alfworld-download",
    ),
    forms=tuple(
        form for split in LOOP_SPLITS for form in ((f"{TREE}/{split}/{GAMES}",), (compact(split), DOMAIN, GRAMMAR))
    ),
    extra="alfworld",
    modules=("textworld", "fast_downward"),
    notes=(
        f"A tree {TREE}/SPLIT/KIND/TRIAL/game.tw-pddl, as alfworld-download makes it, and the compact files serve "
        "equally; of a split that is there in both forms the compact one is read. One of train, valid_train and "
        "valid_seen is needed; valid_unseen is the held-out side."
    ),
)
