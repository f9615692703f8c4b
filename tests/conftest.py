"""What all tests share: this folder's modules can be imported, and the data of the real benchmarks is found here."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from postgresql import PostgreSQL, running_postgresql, why_not

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background, whose children ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)

BENCHMARKS = Path(os.environ.get("EVOLVE_TEST_DATA") or Path(__file__).parents[2] / "shared" / "benchmarks")


@pytest.fixture(scope="session")
def benchmark_data() -> Callable[[str], Path]:
    """Return the data folder of a real benchmark by name; the test is skipped where it is absent."""

    def folder(name: str) -> Path:
        found = BENCHMARKS / name
        if not found.is_dir():
            pytest.skip(f"the data of {name} is not on this machine; EVOLVE_TEST_DATA names the folder that holds it")
        return found

    return folder


@pytest.fixture(scope="session")
def _postgresql() -> Iterator[PostgreSQL]:
    pytest.importorskip("psycopg", reason="the extra postgresql is not installed")
    if reason := why_not():
        pytest.skip(reason)
    with running_postgresql() as server:
        yield server


@pytest.fixture
def postgresql_url(_postgresql: PostgreSQL) -> str:
    """Return the URL of a new database."""
    return _postgresql.new_database()
