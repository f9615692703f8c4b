"""Hosts sessions in processes of their own, for engines that leak, block, print or carry a licence of their own."""

from evolve.environments.children.child import Child
from evolve.environments.children.pool import ChildPool

__all__ = ["Child", "ChildPool"]
