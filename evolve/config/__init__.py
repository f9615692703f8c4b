"""Configuration: its tables, the sources of its values, how they are merged. Every value knows where it came from."""

from evolve.config.load import FILE_NAME, Loaded, load_config
from evolve.config.sections import Config, flat_values
from evolve.config.sources import Told

__all__ = ["FILE_NAME", "Config", "Loaded", "Told", "flat_values", "load_config"]
