"""The way out of the sandbox: what it leads to, and what it cannot be talked into."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from redteam.cases import case

from evolve.proposers.sandbox.gateway import Gateway, hosts_of_addresses

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
    assert answers[1].startswith("SERVICE GET http://127.0.0.1:")
    assert refused == []


def test_addresses_among_the_variables_are_its_model_too() -> None:
    """A base address that the user set is reached at its port; other values name nobody."""
    values = {"A": "https://gate.test/v1", "B": "http://localhost:4000", "C": "gate2.test", "D": "http://x:y:z"}
    assert hosts_of_addresses(values) == ["gate.test:443", "localhost:4000"]
