"""Checks a call's arguments against its schema and against the ids that exist; says what is wrong in one line."""

from __future__ import annotations

import re

from evolve.environments.service_desk.desk import Desk
from evolve.records import Json, Tool

LONGEST_STATEMENT = 300
PATTERNS = {
    "order_id": ("O- and four digits", re.compile(r"O-\d{4}")),
    "customer_id": ("C- and four digits", re.compile(r"C-\d{4}")),
    "subscription_id": ("S- and four digits", re.compile(r"S-\d{4}")),
    "sku": ("K- and four digits", re.compile(r"K-\d{4}")),
    "new_sku": ("K- and four digits", re.compile(r"K-\d{4}")),
    "email": ("an email address", re.compile(r"[^@\s]+@[^@\s]+")),
}


def complaint(tool: Tool, arguments: Json, desk: Desk) -> str | None:
    """Return what is wrong with the arguments, or None. The first wrong argument is named."""
    properties: Json = tool.parameters["properties"]
    for name in tool.parameters["required"]:
        if name not in arguments:
            return f"{name} is missing."
    for name, value in arguments.items():
        if name not in properties:
            return f"{name} is not an argument of {tool.name}."
        wrong = _wrong_value(name, value, properties[name]) or _wrong_id(name, value, desk)
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
    if name == "statement" and len(str(value)) > LONGEST_STATEMENT:
        return f"must be at most {LONGEST_STATEMENT} characters."
    return None


def _wrong_id(name: str, value: object, desk: Desk) -> str | None:
    if name not in PATTERNS:
        return None
    form, pattern = PATTERNS[name]
    if not pattern.fullmatch(str(value)):
        return f"must be {form}."
    known = {
        "order_id": desk.orders.keys(),
        "customer_id": desk.customers.keys(),
        "subscription_id": desk.subscriptions.keys(),
        "email": [customer.email for customer in desk.customers.values()],
    }
    if name in known and value not in known[name]:
        return f"is unknown: {value}."
    return None
