"""Where rule code runs: a process for each episode that can compute and nothing else.

A warm zygote forks a worker; before any byte of a harness is read the worker bounds its resources, enters an
empty Landlock domain and puts on a system-call filter without open, socket, clone or exec. What crosses the
boundary is one JSON line each way. `child` is the far side; everything else here is the host's.
"""

from evolve.harness.worker.child.orders import Layers
from evolve.harness.worker.episode import RuleWorker, StartingWorker
from evolve.harness.worker.pool import WorkerPool
from evolve.harness.worker.replies import FaultKind, ReplyKind, RuleDeclaration, RuleReply
from evolve.harness.worker.tiers import TIERS, Isolation, Tier
from evolve.harness.worker.view import call_json, delta_json, opening_json, step_json

__all__ = [
    "TIERS",
    "FaultKind",
    "Isolation",
    "Layers",
    "ReplyKind",
    "RuleDeclaration",
    "RuleReply",
    "RuleWorker",
    "StartingWorker",
    "Tier",
    "WorkerPool",
    "call_json",
    "delta_json",
    "opening_json",
    "step_json",
]
