"""Looks at what a run needs: what is there, what is missing, and the command that mends it. Changes nothing."""

from evolve.doctor.examine import examine
from evolve.doctor.finding import Finding
from evolve.doctor.ready import refusals, require_ready, require_startable

__all__ = ["Finding", "examine", "refusals", "require_ready", "require_startable"]
