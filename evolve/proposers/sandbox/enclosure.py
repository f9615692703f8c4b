"""Prepares the room of one agent and takes it down again: a private home, the check, a gateway to its model."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from evolve.errors import ConfigError
from evolve.proposers.agents import AgentRow, home_of, place_of
from evolve.proposers.sandbox import kit
from evolve.proposers.sandbox.addresses import hosts_of, text_of
from evolve.proposers.sandbox.gateway import Gateway
from evolve.proposers.sandbox.installed import places_of
from evolve.proposers.sandbox.room import OPEN_NETWORK, Room, Sandbox
from evolve.protocols import Assignment
from evolve.scratch import private_folder

_OF_THE_HOST = ("TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


@dataclass(frozen=True, slots=True)
class Entered:
    """A room that is ready: how to run in it, and the gateway out of it, where there is one."""

    sandbox: Sandbox
    room: Room
    entrance: tuple[str, ...]
    environ: Mapping[str, str]
    gateway: Gateway | None = None

    def trouble(self) -> str:
        """Say whom the agent did not reach; empty where nobody."""
        return self.gateway.trouble() if self.gateway else ""

    def command(self, argv: list[str]) -> list[str]:
        """Return the command that runs the agent in the room."""
        return self.sandbox.wrap([*self.entrance, *argv], self.room)


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A sandbox and what it must never show.

    Args:
        sandbox: how programs are shut in.
        hidden: the user's home, the workspace's repository, benchmark data.
    """

    sandbox: Sandbox
    hidden: tuple[Path, ...]

    def kind(self, row: AgentRow) -> str:
        """Return what stands in the record of a candidate that this agent makes."""
        return f"{self.sandbox.name}, open network" if OPEN_NETWORK in row.hosts else self.sandbox.name

    def gateway(self, row: AgentRow, environ: Mapping[str, str]) -> Gateway | None:
        """Return the way out for one agent; None for one that has the whole network, or nobody to reach.

        Raises:
            ConfigError: an address in the agent's settings, or that of the user's own proxy, is none.
        """
        hosts = () if OPEN_NETWORK in row.hosts else _hosts(row, environ, home_of(environ))
        return _gateway(hosts, environ) if hosts else None

    @asynccontextmanager
    async def enter(
        self, row: AgentRow, program: str, assignment: Assignment, environ: Mapping[str, str]
    ) -> AsyncIterator[Entered]:
        """Make the room for one agent, and remove its private home afterwards.

        Args:
            environ: what the agent gets of the host's environment.

        Raises:
            ConfigError: the row wants something copied that does not lie in the user's home; or as for `gateway`.
        """
        user = home_of(environ)
        with private_folder("evolve-agent-") as home:
            _copy(row, user, home)
            kit.write_evolve_program(home / "bin")
            (home / "tmp").mkdir()
            room = Room(
                folder=assignment.workspace,
                writable=(assignment.workspace, home),
                readable=tuple(self._readable(row, program, environ, user)),
                hidden=(*self.hidden, *kit.package_folders()),
                restored=(*kit.check_places(), assignment.evidence),
                has_network=OPEN_NETWORK in row.hosts,
            )
            inside = _inside(environ, home)
            gateway = self.gateway(row, environ)
            if gateway is None:
                yield Entered(self.sandbox, room, (), inside)
                return
            async with self._opened(gateway, room, inside) as entered:
                yield entered

    def _readable(self, row: AgentRow, program: str, environ: Mapping[str, str], user: Path) -> list[Path]:
        named = [place_of(place, user) for place in row.readable]
        certificates = [Path(environ[name]) for name in _CERTIFICATES if environ.get(name)]
        installed = places_of(program, environ.get("PATH", ""))
        return [place for place in (*kit.interpreter_places(), *installed, *named, *certificates) if place.exists()]

    @asynccontextmanager
    async def _opened(self, gateway: Gateway, room: Room, environ: Mapping[str, str]) -> AsyncIterator[Entered]:
        """Put the gateway where the sandbox can reach it."""
        if not self.sandbox.has_own_loopback:
            async with gateway.at_port() as port:
                proxies = dict.fromkeys(_PROXIES, f"http://127.0.0.1:{port}")
                yield Entered(self.sandbox, room, (), {**environ, **proxies}, gateway)
            return
        with private_folder("evolve-door-") as folder:
            door = folder / "gateway"
            async with gateway.at_socket(door):
                entrance = (str(kit.interpreter()), kit.ISOLATED, str(kit.SCRIPTS / "entrance.py"), str(door))
                shown = replace(room, restored=(*room.restored, folder))
                yield Entered(self.sandbox, shown, entrance, environ, gateway)


def _gateway(hosts: Sequence[str], environ: Mapping[str, str]) -> Gateway:
    """Return the gateway to some hosts, through the user's own proxy where there is one."""
    name = next((name for name in _PROXIES if environ.get(name)), "")
    direct = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    try:
        return Gateway(hosts, upstream=environ[name] if name else None, direct=direct)
    except ValueError as error:
        where = f"the variable {name}" if name else "the agent's settings"
        raise ConfigError(f"no gateway can be made: an address in {where} does not read: {error}") from error


def _hosts(row: AgentRow, environ: Mapping[str, str], user: Path) -> list[str]:
    """Return who may be reached: the row's hosts, and those of base addresses in what it hands on of the user's."""
    variables = {name: environ[name] for name in row.variables if name in environ} | row.set_variables
    files = (text_of(place_of(written, user)) for written in row.copied)
    return [*row.hosts, *hosts_of((*variables.values(), *files))]


def _inside(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the environment inside: nothing that points to the user's folders or around the gateway."""
    left_out = {*_OF_THE_HOST, *_PROXIES, "NO_PROXY", "no_proxy"}
    kept = {name: value for name, value in environ.items() if name not in left_out}
    path = os.pathsep.join([str(home / "bin"), environ.get("PATH", "")])
    return {**kept, "HOME": str(home), "TMPDIR": str(home / "tmp"), "PATH": path}


def _copy(row: AgentRow, user: Path, home: Path) -> None:
    """Copy the agent's own configuration to the same place of the private home; what is not there is passed over."""
    for written in row.copied:
        source = place_of(written, user)
        if not source.is_relative_to(user) or source == user:
            raise ConfigError(f"agent {row.name}: copied names {written!r}; it must lie in the home folder: ~/...")
        target = home / source.relative_to(user)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy2(source, target)
