"""What a run was and what came of it: one record, and three ways to show it (JSON, terminal text, one HTML file)."""

from evolve.report.build import build
from evolve.report.document import Report
from evolve.report.html import write_html
from evolve.report.text import text

__all__ = ["Report", "build", "text", "write_html"]
