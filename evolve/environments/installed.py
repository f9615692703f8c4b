"""Finds environments by name among what the installed packages offer, ours and those of others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import EntryPoint, EntryPoints, entry_points

from evolve.config import Config
from evolve.errors import ConfigError, EvolveError
from evolve.protocols import Environment

ENVIRONMENT_GROUP = "evolve.environments"


def offered(group: str) -> EntryPoints:
    """Return what the installed packages offer under a name, as it was when this was first asked."""
    return _offered(group, tuple(sys.path))


@cache
def _offered(group: str, path: tuple[str, ...]) -> EntryPoints:
    return entry_points(group=group)  # reads the metadata of every package


def environment_names() -> list[str]:
    """Return the names of all installed environments."""
    return sorted({point.name for point in offered(ENVIRONMENT_GROUP)})


def ready_environments() -> list[str]:
    """Return the environments that can be made on this machine, the default one first.

    One that lacks an extra, data or a program is left out.
    """
    names = sorted(environment_names(), key=lambda name: (name != Config().environment, name))
    return [name for name in names if _is_ready(name)]


def check_names(names: Sequence[str]) -> list[str]:
    """Return environment names without repetitions, in the order given.

    Raises:
        ConfigError: one of them is not installed.
    """
    installed = environment_names()
    for name in names:
        if name not in installed:
            raise ConfigError(f"there is no environment {name!r}; installed are: {', '.join(installed)}")
    return list(dict.fromkeys(names))


def _is_ready(name: str) -> bool:
    try:
        make_environment(name, {}).card  # noqa: B018  the card is where digests of data are first needed
    except ConfigError:
        return False
    return True


def make_environment(name: str, options: Mapping[str, object]) -> Environment:
    """Make an environment by name.

    Raises:
        ConfigError: none of that name is installed, or an option is wrong.
    """
    return environment_maker(name)(options)


def environment_maker(name: str) -> Callable[[Mapping[str, object]], Environment]:
    """Return what makes an environment out of its options.

    Raises:
        ConfigError: none of that name is installed, or several are, or its module does not load.
    """
    check_names([name])
    found = {point.value: point for point in offered(ENVIRONMENT_GROUP) if point.name == name}
    if len(found) > 1:
        raise ConfigError(
            f"{name!r} is given by {' and by '.join(sorted(found))}; uninstall the package of one of them"
        )
    (point,) = found.values()
    try:
        make: Callable[[Mapping[str, object]], Environment] = point.load()
    except Exception as error:
        raise _unusable(point, error) from error
    return make if _is_ours(point) else partial(_make_theirs, point, make)


def _is_ours(point: EntryPoint) -> bool:
    return point.value.startswith("evolve.")


def _make_theirs(
    point: EntryPoint, make: Callable[[Mapping[str, object]], Environment], options: Mapping[str, object]
) -> Environment:
    """Make an environment of somebody else; what goes wrong in it is not told as a fault of evolve."""
    try:
        return make(options)
    except EvolveError:
        raise
    except Exception as error:
        raise _unusable(point, error) from error


def _unusable(point: EntryPoint, error: Exception) -> ConfigError:
    if isinstance(error, ConfigError):
        return error
    told = f"{type(error).__name__}: {error}"
    return ConfigError(
        f"the environment {point.name!r} ({point.value}) cannot be used: {told}; mend it or uninstall it"
    )
