"""The way out of a sandbox: an HTTP proxy on the host that lets through to an agent's own model and to nowhere else.

It reads the first lines of a connection to learn where it wants to go; what passes afterwards it does not look at.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from evolve.proposers.sandbox.heads import as_asked_directly, ending, is_interim

_HEAD_BYTES = 64 * 1024
_HEAD_TIMEOUT_S = 30.0
_DIAL_TIMEOUT_S = 30.0
_CHUNK = 64 * 1024
_MOST_AT_ONCE = 64
_MOST_NOTED = 50

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Pump = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]


class Gateway:
    """Decides who may be reached.

    Args:
        hosts: `name` (port 443), `name:port`, or `*.name` for all names below it.
        upstream: the user's own proxy, through which the host itself gets out; None dials directly.
        direct: what the user's NO_PROXY says: whom that proxy is not asked for. This machine it never is.

    Raises:
        ValueError: one of the hosts, or the proxy, is no address.
    """

    def __init__(self, hosts: Collection[str], *, upstream: str | None = None, direct: str = "") -> None:
        self._allowed = [_split(host, 443) for host in hosts]
        self._direct = direct
        is_asked = not all(self._is_direct(host.removeprefix("*.")) for host, _ in self._allowed)
        self._upstream = _proxy_of(upstream) if upstream and is_asked else None
        self._room = asyncio.Semaphore(_MOST_AT_ONCE)
        self.refused: list[str] = []
        self.unreached: list[str] = []

    @asynccontextmanager
    async def at_socket(self, path: Path) -> AsyncIterator[None]:
        """Listen on a socket in a folder."""
        async with _closing(await asyncio.start_unix_server(self._meet, path, limit=_HEAD_BYTES)):
            yield

    @asynccontextmanager
    async def at_port(self) -> AsyncIterator[int]:
        """Listen on a free port of this machine's 127.0.0.1."""
        server = await asyncio.start_server(self._meet, "127.0.0.1", 0, limit=_HEAD_BYTES)
        async with _closing(server):
            yield server.sockets[0].getsockname()[1]

    def allows(self, host: str, port: int) -> bool:
        """Say whether a place may be reached."""
        name = host.lower().rstrip(".")
        return any(
            port == allowed_port and (name == allowed or (allowed.startswith("*.") and name.endswith(allowed[1:])))
            for allowed, allowed_port in self._allowed
        )

    def trouble(self) -> str:
        """Say in words whom it kept the agent from, and whom it could not lead it to; empty where nobody."""
        refused = f"the sandbox kept it from {', '.join(self.refused)} (see hosts in its row)" if self.refused else ""
        unreached = f"nobody answered at {', '.join(self.unreached)}" if self.unreached else ""
        return "; ".join(filter(None, (refused, unreached)))

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with self._room:
            try:
                await self._lead(reader, writer)
            except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                pass  # the visitor, or the place, is gone or talks no HTTP
            except asyncio.CancelledError:
                pass  # by `_closing` alone; asyncio prints a traceback for a visitor whose task ends as cancelled
            finally:
                await _close(writer)

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_TIMEOUT_S):
            head = await reader.readuntil(b"\r\n\r\n")
        try:
            method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
            is_tunnel = method == "CONNECT"
            host, port = _split(target, 443) if is_tunnel else _split(_place_of(target), 80)
        except ValueError:
            return await _answer(writer, "400 Neither a tunnel nor a plain request to a whole address")
        if not self.allows(host, port):
            _note(self.refused, f"{host}:{port}")
            return await _answer(writer, "403 Not in the hosts of this agent's row")
        try:
            async with asyncio.timeout(_DIAL_TIMEOUT_S):
                outside, out = await self._dial(host, port)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            _note(self.unreached, f"{host}:{port}")
            return await _answer(writer, "502 Nobody answers there")
        try:
            if is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                out.write(as_asked_directly(head))
            await _relay((reader, writer), (outside, out), back=_pump if is_tunnel else _pump_one_answer)
        finally:
            await _close(out)
        return None

    async def _dial(self, host: str, port: int) -> Streams:
        """Return a connection that leads to one place and to no other, whatever is said on it later.

        Raises:
            OSError: nobody is there, or the user's own proxy leads nobody there.
        """
        if self._upstream is None or not self._upstream.hostname or self._is_direct(host):
            return await asyncio.open_connection(host, port)
        outside, out = await asyncio.open_connection(self._upstream.hostname, self._upstream.port or 80)
        try:
            out.write(self._introduction(f"[{host}]:{port}" if ":" in host else f"{host}:{port}"))
            answer = await outside.readuntil(b"\r\n\r\n")
            if answer.split(b" ", 2)[1:2] != [b"200"]:
                raise ConnectionRefusedError("the user's own proxy does not lead there")
        except BaseException:
            await _close(out)
            raise
        return outside, out

    def _is_direct(self, host: str) -> bool:
        named = [one.strip().lower().lstrip(".") for one in self._direct.split(",") if one.strip()]
        return host in _THIS_MACHINE or any(one in ("*", host) or host.endswith(f".{one}") for one in named)

    def _introduction(self, place: str) -> bytes:
        """Return what asks the user's own proxy for a tunnel, with the user's name where it wants one.

        Plain requests go through a tunnel too: a proxy takes a second one, to anywhere, on the same connection.
        """
        assert self._upstream is not None
        lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
        if self._upstream.username is not None:
            told = f"{unquote(self._upstream.username)}:{unquote(self._upstream.password or '')}".encode()
            lines.append(f"Proxy-Authorization: Basic {base64.b64encode(told).decode()}")
        return "\r\n".join([*lines, "", ""]).encode()


def _note(places: list[str], place: str) -> None:
    shown = "".join(letter for letter in place[:100] if letter.isprintable())
    if shown not in places and len(places) < _MOST_NOTED:
        places.append(shown)


async def _answer(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
    await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close a connection and see it closed, so that none is left to the end of the loop."""
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _place_of(target: str) -> str:
    """Return where a plain request goes: its target is a whole address."""
    address = urlsplit(target)
    if address.scheme != "http" or not address.netloc:
        raise ValueError("no whole address")
    return address.netloc.rpartition("@")[2]


def _proxy_of(address: str) -> SplitResult:
    """Return the address of a proxy in its parts.

    Raises:
        ValueError: its port is no number, or it speaks something else than plain HTTP. A password is not told.
    """
    parts = urlsplit(address if "://" in address else f"http://{address.removeprefix('//')}")
    if parts.scheme != "http":
        raise ValueError(f"{parts.scheme}:// is no proxy that the gateway speaks to, http:// is")
    try:
        _ = parts.port
    except ValueError:
        raise ValueError("its port is no number") from None
    return parts


def _split(place: str, port: int) -> tuple[str, int]:
    """Split `host:port`; a host of version 6 stands in brackets."""
    if place.startswith("["):
        host, _, rest = place[1:].partition("]")
        return host.lower(), int(rest.removeprefix(":") or port)
    host, _, written = place.partition(":")
    return host.lower().rstrip("."), int(written or port)


async def _relay(one: Streams, other: Streams, *, back: Pump) -> None:
    pumps = [asyncio.create_task(_pump(one[0], other[1])), asyncio.create_task(back(other[0], one[1]))]
    try:
        await asyncio.gather(*pumps)
    finally:
        for pump in pumps:
            pump.cancel()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(_CHUNK):
        sink.write(piece)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()


async def _pump_one_answer(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Pass an answer on, and say in it that the connection ends with it. What is no HTTP is passed on as it is."""
    seen, is_told = b"", False
    while not is_told and b"HTTP/".startswith(seen[:5]) and len(seen) <= _HEAD_BYTES:
        head, end, rest = seen.partition(b"\r\n\r\n")
        if end:
            is_told = not is_interim(head)
            sink.write((ending(head) if is_told else head) + end)
            seen = rest
        elif piece := await source.read(_CHUNK):
            seen += piece
        else:
            break
    sink.write(seen)
    await sink.drain()
    await _pump(source, sink)


@asynccontextmanager
async def _closing(server: asyncio.Server) -> AsyncIterator[None]:
    """Close a server with all of its connections."""
    before = asyncio.all_tasks()
    try:
        yield
    finally:
        server.close()
        led = [task for task in asyncio.all_tasks() - before if getattr(task.get_coro(), "__name__", "") == "_meet"]
        for task in led:
            task.cancel()
        await asyncio.gather(*led, return_exceptions=True)
