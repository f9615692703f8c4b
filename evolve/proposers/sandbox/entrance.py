"""Runs inside a sandbox that has no network: opens a door to the gateway, then becomes the agent.

    python entrance.py SOCKET PROGRAM [ARGUMENT]...

The door is an HTTP proxy on the sandbox's own 127.0.0.1; what may pass is decided by the gateway, outside. Imports the
standard library only: nothing else need be there.
"""

import os
import signal
import socket
import sys
import threading

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_CHUNK = 64 * 1024


def main(gateway: str, command: list[str]) -> None:
    """Serve the door in a process of its own and replace this one by the program."""
    door = socket.create_server(("127.0.0.1", 0), backlog=64)
    address = f"http://127.0.0.1:{door.getsockname()[1]}"
    if os.fork() == 0:
        _serve(door, gateway)
    door.close()
    environ = {name: value for name, value in os.environ.items() if name.lower() != "no_proxy"}
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    os.execve(command[0], command, environ | dict.fromkeys(_PROXIES, address))  # noqa: S606  no shell is wanted


def _serve(door: socket.socket, gateway: str) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)  # the agent's output ends with the agent
    while True:
        visitor, _ = door.accept()
        threading.Thread(target=_lead_through, args=(visitor, gateway), daemon=True).start()


def _lead_through(visitor: socket.socket, gateway: str) -> None:
    with visitor, socket.socket(socket.AF_UNIX) as outside:
        try:
            outside.connect(gateway)
        except OSError:
            return
        back = threading.Thread(target=_pump, args=(outside, visitor), daemon=True)
        back.start()
        _pump(visitor, outside)
        back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while piece := source.recv(_CHUNK):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            end.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
