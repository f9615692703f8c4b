"""Where WebShop's 1,000-product set comes from and which of its files are read."""

from __future__ import annotations

from evolve.environments.data import Benchmark, DataFile

NAME = "webshop"
EXTRA = "webshop"
PRODUCTS = "documents_1k.jsonl"
GOALS = "goals_500_to_6909.json.gz"
HELDOUT = "goals_0_to_499.json.gz"
TOKENS = "lucene_doc_tokens_1k.json"
REFERENCE = "lucene_reference_top50.jsonl.gz"
EPISODES = "golden_traces.jsonl.gz"

BENCHMARK = Benchmark(
    name=NAME,
    title="WebShop, 1,000 products",
    environments=(NAME,),
    licence="MIT; product texts scraped from Amazon by its authors",
    source="https://github.com/princeton-nlp/WebShop @ 64fa2a5",
    files=(
        DataFile(
            PRODUCTS,
            "1,000 products as upstream processes and indexes them",
            "24fb9257c435accee9cc82e570dc8ec76a218d3b188222a84fdeb7fc5937d00e",
        ),
        DataFile(
            GOALS,
            "the synthetic goals from index 500 on, texts and price limits fixed",
            "169ba0a4f39243fe4eeff1107badebf88d316d0afdea1d28418cf245c456a564",
        ),
        DataFile(HELDOUT, "goals 0 to 499, the held-out ones", is_needed=False),
        DataFile(
            REFERENCE,
            "700 searches of the reference index; tests compare ours with them",
            "426ec135d3925c1ed3d45f9e7d97356c36e7f3d1f2773426929658d5f01d8754",
            is_needed=False,
        ),
        DataFile(
            EPISODES,
            "60 recorded episodes; tests replay them",
            "c06a55ac569b1383d16b1a87f6210ec57dd4ccc0b66ad1c68c998306bfa2fdae",
            is_needed=False,
        ),
        DataFile(
            TOKENS,
            "the reference index's words of each product; tests compare ours with them",
            "5a3d15fda29038bbd2d8dc428568a5bba6560fef84d2c31522bdbef496a20a60",
            is_needed=False,
        ),
    ),
    fetch=(
        "git clone https://github.com/princeton-nlp/WebShop {folder}/checkout",
        "cd {folder}/checkout && git checkout 64fa2a5 && ./setup.sh -d small",
        f"cp {{folder}}/checkout/search_engine/resources_1k/documents.jsonl {{folder}}/{PRODUCTS}",
        "python -m evolve.environments.webshop.divide GOALS.json.gz {folder}",
    ),
    extra=EXTRA,
    modules=("nltk", "rapidfuzz"),
    notes=(
        "Upstream's setup needs conda and Java, best in an environment of its own; playing here needs neither. "
        "Upstream draws prices and price limits anew in each process, so goals are compared across runs from a fixed "
        "file only: GOALS.json.gz stands for the full list of 6,910 that the last command divides. With the extra "
        "webshop-nouns titles are compared by their nouns, as upstream does; the scorer's version says which it was."
    ),
)
