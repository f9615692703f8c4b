"""What runs on the user's machine beside evolve and must not be reached: another program, and services of each kind."""

from __future__ import annotations

import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def running_services(top: Path, *, program: str, service: str, model: str) -> Iterator[dict[str, Any]]:
    """Run them while the block lasts; give how each is found.

    Args:
        top: folder for the socket that lies in one.
        program: a secret among the variables of the other program.
        service: what the services tell whoever reaches them.
        model: what the service tells that stands for a model's endpoint, and may be reached.
    """
    with ExitStack() as stack:
        yield {
            "process": stack.enter_context(_bystander(program)),
            "tcp": stack.enter_context(_tcp(service)),
            "model": stack.enter_context(_tcp(model)),
            "udp": stack.enter_context(_udp(service)),
            "abstract": stack.enter_context(_unix(service, f"\0evolve-{secrets.token_hex(6)}"))[1:],
            "socket": stack.enter_context(_unix(service, str(top / "socket"))),
        }


@contextmanager
def _bystander(canary: str) -> Iterator[int]:
    """Run another program of the user, with a secret among its variables and so on its stack."""
    sleeper = subprocess.Popen(
        [sys.executable, "-ISc", "import time; time.sleep(600)"],
        env={"SECRET": canary},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield sleeper.pid
    finally:
        sleeper.kill()
        sleeper.wait()


@contextmanager
def _served(listener: socket.socket, answer: Callable[[], None]) -> Iterator[None]:
    def serve() -> None:
        while True:
            try:
                answer()
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        with listener:
            if listener.type == socket.SOCK_STREAM:
                listener.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=2)


def _greet(listener: socket.socket, words: str) -> None:
    line, _ = listener.accept()
    with line:
        line.sendall(words.encode())


@contextmanager
def _tcp(words: str) -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    with _served(listener, lambda: _greet(listener, words)):
        yield listener.getsockname()[1]


@contextmanager
def _unix(words: str, address: str) -> Iterator[str]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    with _served(listener, lambda: _greet(listener, words)):
        yield address


@contextmanager
def _udp(words: str) -> Iterator[int]:
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("127.0.0.1", 0))
    listener.settimeout(0.2)

    def answer() -> None:
        try:
            _, who = listener.recvfrom(1000)
        except TimeoutError:
            return
        listener.sendto(words.encode(), who)

    with _served(listener, answer):
        yield listener.getsockname()[1]
