"""A service desk for orders and subscriptions under a written policy: tickets in, tools, one closing."""

from evolve.environments.service_desk.environment import ServiceDesk, create

__all__ = ["ServiceDesk", "create"]
