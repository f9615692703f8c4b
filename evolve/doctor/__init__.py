"""Looks at what a run needs: what is there, what is missing, and the command that mends it. Changes nothing."""

from evolve.doctor.examine import examine
from evolve.doctor.finding import Finding
from evolve.doctor.ready import require_ready, require_startable
from evolve.doctor.refusals import refusals, unknown_units, warnings

__all__ = ["Finding", "examine", "refusals", "require_ready", "require_startable", "unknown_units", "warnings"]
