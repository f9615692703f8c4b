"""The way out of the sandbox: what it leads to, and what it cannot be talked into."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from redteam.cases import case

from evolve.proposers.sandbox.addresses import hosts_of
from evolve.proposers.sandbox.gateway import Gateway

HOSTS = ("api.model.test", "*.cdn.model.test", "127.0.0.1:8443")


@case("21.gateway")
@pytest.mark.parametrize(
    ("host", "port", "is_allowed"),
    [
        ("api.model.test", 443, True),
        ("API.Model.Test.", 443, True),
        ("eu.cdn.model.test", 443, True),
        ("127.0.0.1", 8443, True),
        ("api.model.test", 80, False),
        ("api.model.test", 22, False),
        ("127.0.0.1", 443, False),
        ("evilapi.model.test", 443, False),
        ("api.model.test.evil.test", 443, False),
        ("cdn.model.test", 443, False),
        ("evilcdn.model.test", 443, False),
        ("localhost", 8443, False),
        ("", 443, False),
    ],
)
def test_names_and_ports_are_exact(host: str, port: int, is_allowed: bool) -> None:
    """A host is allowed by its whole name at its port; a star stands for what is below a name and for nothing else."""
    assert Gateway(HOSTS).allows(host, port) is is_allowed


async def _talk(hosts: Sequence[str], requests: Sequence[str], door: Path) -> tuple[list[str], list[str], int]:
    """Send requests through a gateway with one service behind it; return answers, the refused, and its visitors."""
    visitors = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal visitors
        visitors += 1
        writer.write(b"SERVICE " + await reader.read(100))
        writer.close()

    service = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = service.sockets[0].getsockname()[1]
    gateway = Gateway([host.format(port=port) for host in hosts])
    answers = []
    async with service, gateway.at_socket(door):
        for request in requests:
            reader, writer = await asyncio.open_unix_connection(door)
            writer.write(request.format(port=port).encode())
            answers.append((await asyncio.wait_for(reader.read(-1), 5)).decode())
            writer.close()
    return answers, gateway.refused, visitors


TRICKS = [
    "CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: api.model.test\r\n\r\n",
    "CONNECT api.model.test@127.0.0.1:{port} HTTP/1.1\r\n\r\n",
    "CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1\r\n\r\n",
    "CONNECT 127.1:{port} HTTP/1.1\r\n\r\n",
    "CONNECT 2130706433:{port} HTTP/1.1\r\n\r\n",
    "GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: api.model.test\r\n\r\n",
    "GET http://api.model.test@127.0.0.1:{port}/ HTTP/1.1\r\n\r\n",
    "GET http://api.model.test:443\\@127.0.0.1:{port}/ HTTP/1.1\r\n\r\n",
    "GET ftp://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
    "CONNECT 127.0.0.1:{port}",
    "\r\n\r\n",
    "CONNECT 127.0.0.1:99999999 HTTP/1.1\r\n\r\n",
    "CONNECT \x00\xff HTTP/1.1\r\n\r\n",
]


@case("21.gateway")
def test_no_request_leads_past_the_list(tmp_path: Path) -> None:
    """User parts, Host lines, other spellings of an address and broken requests reach nobody; a list that names the
    service leads there, by tunnel and by plain request."""
    requests = [*TRICKS[:10], *TRICKS[11:]]
    answers, refused, visitors = asyncio.run(_talk(["api.model.test"], requests, tmp_path / "door"))
    assert visitors == 0
    assert not any("SERVICE" in answer for answer in answers)
    assert any(place.startswith("127.0.0.1:") for place in refused)
    open_requests = [f"{TRICKS[0]}hello", TRICKS[5]]
    answers, refused, visitors = asyncio.run(_talk(["127.0.0.1:{port}"], open_requests, tmp_path / "door2"))
    assert visitors == 2  # the control
    assert answers[0].endswith("SERVICE hello")
    assert answers[1].startswith("SERVICE GET / HTTP/1.1\r\nHost: 127.0.0.1:")
    assert refused == []


def test_a_plain_request_arrives_as_if_it_had_been_asked_directly(tmp_path: Path) -> None:
    """Path and query stand alone in its first line, and it goes to the host that was checked, whatever it says."""
    request = "GET http://127.0.0.1:{port}/v1?a=b HTTP/1.1\r\nHost: me\r\nConnection: keep-alive\r\nX-A: 1\r\n\r\n"
    answers, _, _ = asyncio.run(_talk(["127.0.0.1:{port}"], [request], tmp_path / "door"))
    (head,) = (re.sub(r"127.0.0.1:\d+", "place", answer) for answer in answers)
    assert head == "SERVICE GET /v1?a=b HTTP/1.1\r\nHost: place\r\nX-A: 1\r\nConnection: close\r\n\r\n"


def test_an_open_tunnel_ends_with_the_sandbox_in_silence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An agent that leaves a connection open is cut off without a traceback on the user's terminal."""

    async def leave_open() -> bytes:
        taken: list[asyncio.StreamWriter] = []
        service = await asyncio.start_server(lambda reader, writer: taken.append(writer), "127.0.0.1", 0)
        port = service.sockets[0].getsockname()[1]
        async with Gateway([f"127.0.0.1:{port}"]).at_socket(tmp_path / "door"):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "door")
            writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
        rest = await reader.read(-1)
        for end in (writer, *taken):
            end.close()
            await end.wait_closed()
        service.close()
        return rest

    assert asyncio.run(leave_open()) == b""
    assert caplog.records == []


SECOND = "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"


async def _talk_behind_a_proxy(request: str, status: str, door: Path | None) -> tuple[list[str], str]:
    """Send a request and a second one to another place; return what the user's own proxy took for requests.

    Args:
        status: what the proxy answers; it keeps the connection, as proxies do.
        door: where the gateway listens; None speaks to the proxy itself.
    """
    heads: list[str] = []
    tunnelled = ""
    serving: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal tunnelled
        task = asyncio.current_task()
        assert task is not None
        serving.append(task)
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                heads.append(head)
                writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
                if head.startswith("CONNECT ") and status.startswith("200"):
                    tunnelled = (await reader.read(1000)).decode()
                    break
        except asyncio.IncompleteReadError:
            pass
        writer.close()
        await writer.wait_closed()

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    gateway = Gateway(["api.model.test", "api.model.test:80"], upstream=f"http://user:word@127.0.0.1:{port}")
    async with proxy:
        if door is None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write((request + SECOND).encode())
            writer.write_eof()
            await reader.read(-1)
            writer.close()
            await asyncio.gather(writer.wait_closed(), *serving)
            return heads, tunnelled
        async with gateway.at_socket(door):
            reader, writer = await asyncio.open_unix_connection(door)
            writer.write((request + SECOND).encode())
            writer.write_eof()
            await asyncio.wait_for(reader.read(-1), 5)
            writer.close()
            await asyncio.gather(writer.wait_closed(), *serving)
    return heads, tunnelled


@case("21.gateway")
@pytest.mark.parametrize("status", ["200 OK", "502 Bad Gateway"])
@pytest.mark.parametrize(
    "request_line",
    ["CONNECT api.model.test:443 HTTP/1.1", "GET http://api.model.test/v1 HTTP/1.1"],
    ids=["tunnel", "plain"],
)
def test_a_second_request_does_not_lead_the_users_own_proxy_elsewhere(
    tmp_path: Path, request_line: str, status: str
) -> None:
    """The proxy is asked for one tunnel to the place that was checked, and never reads what is said after it."""
    request = f"{request_line}\r\n\r\n"
    heads, tunnelled = asyncio.run(_talk_behind_a_proxy(request, status, tmp_path / "door"))
    place = "api.model.test:443" if "CONNECT" in request else "api.model.test:80"
    assert [head.splitlines()[0] for head in heads] == [f"CONNECT {place} HTTP/1.1"]
    assert "Proxy-Authorization: Basic dXNlcjp3b3Jk" in heads[0]
    assert ("evil.test" in tunnelled) is status.startswith("200")  # it goes to that place, as anything may
    heads, _ = asyncio.run(_talk_behind_a_proxy(SECOND, "502 Bad Gateway", None))
    assert len([head for head in heads if "evil.test" in head]) == 2  # the control


@pytest.mark.parametrize("request_line", ["CONNECT 127.0.0.1:{port} HTTP/1.1", "GET http://127.0.0.1:{port}/ HTTP/1.1"])
def test_a_model_that_does_not_answer_is_named(tmp_path: Path, request_line: str) -> None:
    """The visitor is told so in HTTP, and whoever reads the agent's failure learns where nobody answered."""

    async def knock() -> tuple[bytes, str]:
        gateway = Gateway([f"127.0.0.1:{port}"])
        async with gateway.at_socket(tmp_path / "door"):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "door")
            writer.write(f"{request_line.format(port=port)}\r\n\r\n".encode())
            answer = await asyncio.wait_for(reader.read(-1), 5)
            writer.close()
        return answer, gateway.trouble()

    with socket.socket() as taken:  # bound and not listening
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        answer, trouble = asyncio.run(knock())
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert trouble == f"nobody answered at 127.0.0.1:{port}"


def test_a_server_of_this_machine_and_what_no_proxy_names_are_asked_directly(tmp_path: Path) -> None:
    """The user's own proxy is asked for the rest: it would look on its own machine, and get the key."""
    gateway = Gateway(["127.0.0.1:1"], upstream="http://proxy.test", direct="inside.test, .corp.test")
    direct = {host: gateway._is_direct(host) for host in ("127.0.0.1", "inside.test", "a.corp.test", "api.model.test")}
    assert direct == {"127.0.0.1": True, "inside.test": True, "a.corp.test": True, "api.model.test": False}


@pytest.mark.parametrize(
    ("upstream", "told"),
    [
        ("socks5://127.0.0.1:1", "socks5:// is no proxy"),
        ("https://proxy.test", "https:// is no proxy"),
        ("http://user:top#secret@proxy.test:3128", "its port is no number"),
    ],
)
def test_a_proxy_that_cannot_be_spoken_to_is_refused_without_its_password(upstream: str, told: str) -> None:
    """Unless nobody whom it would be asked for is let through."""
    with pytest.raises(ValueError, match=told) as caught:
        Gateway(["api.model.test"], upstream=upstream)
    assert "top" not in str(caught.value)
    assert Gateway(["127.0.0.1:1", "*.model.test"], upstream=upstream, direct=".model.test")
    assert Gateway(["api.model.test"], upstream="//proxy.test:3128")


def test_a_client_that_keeps_connections_is_told_that_this_one_ends(tmp_path: Path) -> None:
    """The answer says so whatever the place says; one to go on first is passed through, and broken requests get 400."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nConnection: keep-alive\r\nX: 1\r\n\r\nbody")
        writer.close()

    async def ask(request: str) -> bytes:
        service = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = service.sockets[0].getsockname()[1]
        async with service, Gateway([f"127.0.0.1:{port}"]).at_socket(tmp_path / "door"):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "door")
            writer.write(request.format(port=port).encode())
            answer = await asyncio.wait_for(reader.read(-1), 5)
            writer.close()
        return answer

    answer = asyncio.run(ask("GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n"))
    assert answer == b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX: 1\r\nConnection: close\r\n\r\nbody"
    assert asyncio.run(ask("GET ws://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 400 ")


def test_base_addresses_among_its_settings_are_its_model_too() -> None:
    """A base address that the user set, alone or by that name in JSON or TOML, is reached at its port; else nobody:
    no database, no tool's server, nothing in a comment, no pattern of names, nothing in a file that is neither."""
    settings = (
        *("https://gate.test/v1", "http://localhost:4000", "gate2.test", "http://x:y:z"),
        '{"$schema": "https://docs.test", "provider": {"options": {"baseURL": "http://127.0.0.1:8001/v1"}}}',
        'openai_base_url = "https://own.test:8443/v1"\n[mcp_servers.notes]\nurl = "https://notes.test"\n',
        'SUPABASE_URL = "https://a.test"\n[env]\nDATABASE_URL = "http://b.test"\n# base_url = "http://c.test"\n',
        '[mcp_servers.s.env]\nbase_url = "http://d.test"\n[providers.x]\nbase-url = "https://*.test"\n',
        *(
            '{"base_url": "http://[::1]:8080/v1"}',
            '{"base_url": "http://[::1"}',
            '{"base_url": 5}',
            'base_url = "http://e',
        ),
    )
    found = ["gate.test:443", "localhost:4000", "127.0.0.1:8001", "own.test:8443", "[::1]:8080"]
    assert hosts_of(settings) == found
    assert Gateway(found).allows("::1", 8080)
