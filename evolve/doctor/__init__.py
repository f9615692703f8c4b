"""Looks at what a run needs: what is there, what is missing, and the command that mends it. Changes nothing."""

from evolve.doctor.examine import examine
from evolve.doctor.finding import Finding
from evolve.doctor.ready import require_ready, require_startable
from evolve.doctor.refusals import refusals, unknown_units, warnings
from evolve.doctor.spending import budget_warnings, spent_on_record

__all__ = [
    "Finding",
    "budget_warnings",
    "examine",
    "refusals",
    "require_ready",
    "require_startable",
    "spent_on_record",
    "unknown_units",
    "warnings",
]
