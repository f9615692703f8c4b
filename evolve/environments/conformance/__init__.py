"""What every environment has to keep, checked through the protocol alone: `evolve bench verify NAME`.

A check plays a few training tasks with seeded nonsense and looks at what comes back. The held-out split is never
listed: what is checked of it is that it cannot be had.
"""

from evolve.environments.conformance.baseline import Baseline, do_nothing
from evolve.environments.conformance.checks import CHECKS
from evolve.environments.conformance.examine import Check, broken, conformance
from evolve.environments.conformance.nonsense import nonsense
from evolve.environments.conformance.subject import subject_of

__all__ = ["CHECKS", "Baseline", "Check", "broken", "conformance", "do_nothing", "nonsense", "subject_of"]
