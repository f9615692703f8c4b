"""The heads of plain HTTP requests and answers, as the gateway passes them on."""

from __future__ import annotations

from urllib.parse import urlsplit

_REPLACED = (b"host", b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization")


def as_asked_directly(head: bytes) -> bytes:
    """Return the head of a plain request as its place expects it: not every server knows the form that proxies get.

    `Host` is the place that was checked. The place is asked to answer one request a connection; what a place that does
    not listen to that is told next stays between the two.
    """
    request, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    method, target, version = request.split(b" ")
    address = urlsplit(target)
    path = (address.path or b"/") + (b"?" + address.query if address.query else b"")
    named = [(line.partition(b":")[0].strip().lower(), line) for line in headers]
    ending = b"Upgrade" if any(name == b"upgrade" for name, _ in named) else b"close"
    kept = [line for name, line in named if name not in _REPLACED]
    host = b"Host: " + address.netloc.rpartition(b"@")[2]
    return b"\r\n".join([b" ".join((method, path, version)), host, *kept, b"Connection: " + ending, b"", b""])


def is_interim(head: bytes) -> bool:
    """Say whether another answer follows on the same request, as after "100 Continue"."""
    code = head.split(b" ", 2)[1:2]
    return code != [b"101"] and b"".join(code).startswith(b"1")


def ending(head: bytes) -> bytes:
    """Return the head of an answer that says that the connection ends with it."""
    status, *headers = head.split(b"\r\n")
    if status.split(b" ", 2)[1:2] == [b"101"]:  # it goes on in another protocol
        return head
    kept = [line for line in headers if line.partition(b":")[0].strip().lower() != b"connection"]
    return b"\r\n".join([status, *kept, b"Connection: close"])
