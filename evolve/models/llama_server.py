"""The child process that serves one GGUF file: `python -m evolve.models.llama_server '{"path": …}'`.

It takes a free loopback port, prints one JSON line once it answers, and ends when its standard input
closes, so it never outlives its parent. The only module that imports the `local` extra.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from typing import Any

PR_SET_PDEATHSIG = 1
HEALTH_PAUSE_S = 0.05


def main(options: dict[str, Any]) -> None:
    """Serve until standard input closes."""
    report = _take_stdout()
    _die_with_parent()
    os.nice(options["nice"])
    server = _serve(options)
    _wait_until_healthy(server.listening_address)
    report.write(json.dumps({"url": server.listening_address}) + "\n")
    report.flush()
    while os.read(0, 4096):
        pass
    os._exit(0)  # nothing to save, and joining the server's threads could take as long as a reply


def _take_stdout() -> Any:
    """Return what was standard output; the runtime's own prints go to standard error."""
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return report


def _die_with_parent() -> None:
    """Have the kernel kill this process with its parent, should another process hold the pipe open."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve(options: dict[str, Any]) -> Any:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = options["path"]
    parameters.n_ctx = options["context"]
    parameters.n_parallel = 1  # several slots share batches, and replies would depend on what runs beside them
    parameters.cpuparams.n_threads = options["threads"]
    parameters.cpuparams_batch.n_threads = options["threads"]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0  # the system picks a free one, so there is no race for it
    parameters.offline = True
    parameters.ui = False
    parameters.slot_save_path = options["slots"]
    parameters.cache_ram_mib = 0  # else up to 8 GiB of old prompts are kept
    parameters.use_jinja = True
    if options["chat_template"] is not None:
        parameters.chat_template = options["chat_template"]
    return xllamacpp.Server(parameters)


def _wait_until_healthy(url: str) -> None:
    """Wait while the server loads its weights. How long that may take is the parent's business."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        try:
            with direct.open(f"{url}/health") as answer:
                if answer.status == 200:
                    return
        except urllib.error.URLError:
            pass
        time.sleep(HEALTH_PAUSE_S)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
