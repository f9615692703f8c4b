"""τ²-bench: the desks of an airline, a shop and a phone company, played through its own environment classes."""

from __future__ import annotations

from collections.abc import Mapping

from evolve.environments.tau2.environment import Tau2, create

__all__ = ["Tau2", "create_airline", "create_retail", "create_telecom"]


def create_airline(options: Mapping[str, object]) -> Tau2:
    """Make `tau2_airline`; see `create` for the options and errors."""
    return create("airline", options)


def create_retail(options: Mapping[str, object]) -> Tau2:
    """Make `tau2_retail`; see `create` for the options and errors."""
    return create("retail", options)


def create_telecom(options: Mapping[str, object]) -> Tau2:
    """Make `tau2_telecom`; see `create` for the options and errors."""
    return create("telecom", options)
