"""Evolve the harness around a frozen model. Importing this package has no effect."""

__version__ = "0.1.0"
