"""WebShop: a shop of 1,000 real products, shopped by search and clicks in text."""

from evolve.environments.webshop.environment import WebShop, create

__all__ = ["WebShop", "create"]
