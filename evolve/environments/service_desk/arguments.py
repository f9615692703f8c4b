"""Checks a call's arguments against its schema and against the ids that exist; says what is wrong in one line."""

from __future__ import annotations

import re

from evolve.environments.service_desk.desk import Desk
from evolve.records import Json, Tool

LONGEST_STATEMENT = 300
EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


def complaint(tool: Tool, arguments: Json, desk: Desk) -> str | None:
    """Return what is wrong with the arguments, or None. The first wrong argument is named."""
    properties: Json = tool.parameters["properties"]
    for name in tool.parameters["required"]:
        if name not in arguments:
            return f"{name} is missing."
    for name, value in arguments.items():
        if name not in properties:
            return f"{name} is not an argument of {tool.name}."
        wrong = _wrong_value(name, value, properties[name]) or _unknown(name, value, desk)
        if wrong:
            return f"{name} {wrong}"
    return None


def _wrong_value(name: str, value: object, schema: Json) -> str | None:
    kind = schema["type"]
    if kind == "string" and not isinstance(value, str):
        return "must be a string."
    if kind == "integer" and (not isinstance(value, int) or isinstance(value, bool)):
        return "must be an integer."
    if kind == "number" and (not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e6):
        return "must be a number above 0."
    if "enum" in schema and value not in schema["enum"]:
        return f"must be one of {', '.join(schema['enum'])}."
    if kind == "string" and not str(value).strip():
        return "must not be empty."
    if "description" in schema and not re.fullmatch(schema["description"], str(value)):
        return f"must be {schema['description'][1:3]} and four digits."
    if name == "email" and not EMAIL.fullmatch(str(value)):
        return "must be an email address."
    if name == "statement" and len(str(value)) > LONGEST_STATEMENT:
        return f"must be at most {LONGEST_STATEMENT} characters."
    return None


def _unknown(name: str, value: object, desk: Desk) -> str | None:
    known = {
        "order_id": desk.orders.keys(),
        "customer_id": desk.customers.keys(),
        "subscription_id": desk.subscriptions.keys(),
        "email": [customer.email for customer in desk.customers.values()],
    }
    if name in known and value not in known[name]:
        return f"is unknown: {value}."
    return None
