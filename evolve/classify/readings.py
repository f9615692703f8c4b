"""Reads calls that a model wrote as plain text: JSON, fenced or tagged JSON, `tool(name="value")`, broken JSON.

A harness rule carries these functions word for word, so that a rule rescues exactly what a signal counted:
standard library only, no module state. `schemas` maps each tool's name to its JSON schema.
"""

import json
import re
from typing import Any


def is_complete(arguments: dict[str, Any], schema: Any) -> bool:
    """Say whether the arguments are all known to the schema and none that it requires is missing."""
    return set(schema.get("required", ())) <= set(arguments) <= set(schema.get("properties", {}))


def json_objects(text: str) -> list[dict[str, Any]]:
    """Return the outermost JSON objects that stand anywhere in a text, in order."""
    found, position, decoder = [], text.find("{"), json.JSONDecoder()
    while position >= 0:
        try:
            value, position = decoder.raw_decode(text, position)
            found.append(value)
        except ValueError:
            position += 1
        position = text.find("{", position)
    return found


def call_in_object(value: dict[str, Any], schemas: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the (tool, arguments) that a JSON object spells out, or None where it is no call or fits several tools."""
    if isinstance(value.get("function"), dict):
        return call_in_object(value["function"], schemas)
    name = next(
        (value[key] for key in ("name", "tool", "function", "tool_name") if value.get(key) in list(schemas)), None
    )
    if name is not None:
        given = next((value[key] for key in ("arguments", "parameters", "args", "input") if key in value), None)
        if isinstance(given, str):
            given = next(iter(json_objects(given)), None)
        return (name, given) if isinstance(given, dict) and is_complete(given, schemas[name]) else None
    if len(value) == 1:
        ((name, given),) = value.items()
        if name in schemas and isinstance(given, dict) and is_complete(given, schemas[name]):
            return name, given
    fitting = [tool for tool, schema in schemas.items() if value and is_complete(value, schema)]
    return (fitting[0], value) if len(fitting) == 1 else None


def literal(text: str) -> Any:
    """Return the value of a quoted string, number, true, false or none; None where it is something else."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    try:
        return json.loads({"True": "true", "False": "false"}.get(text, text))
    except ValueError:
        return None


def calls_in_code(text: str, schemas: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls written as `tool(name="value")`, or `tool("value")` where the tool has one parameter."""
    found = []
    value = r"\"[^\"\n]*\"|'[^'\n]*'|[\w.+-]+"
    for name, schema in schemas.items():
        for match in re.finditer(rf"(?<![\w.]){re.escape(name)}\(([^()]*)\)", text):
            inside = match.group(1).strip().rstrip(",")
            pairs = re.findall(rf"(\w+)\s*=\s*({value})", inside)
            if len(schema.get("properties", {})) == 1 and re.fullmatch(value, inside):
                pairs = [(next(iter(schema["properties"])), inside)]
            elif re.sub(rf"(\w+)\s*=\s*({value})\s*(,|$)", "", inside).strip():
                continue
            arguments = {key: literal(given) for key, given in pairs}
            if None not in arguments.values() and is_complete(arguments, schema):
                found.append((name, arguments))
    return found


def read_calls(text: str, schemas: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the distinct (shape, tool, arguments) that a text can be read as; one entry means one reading."""
    shape = "tagged" if "<tool_call" in text else "fenced" if "```" in text else "json"
    readings = [(shape, call_in_object(value, schemas)) for value in json_objects(text)]
    readings += [("code", call) for call in calls_in_code(text, schemas)]
    distinct: list[tuple[str, str, dict[str, Any]]] = []
    for kind, call in readings:
        if call is not None and all(call != (tool, arguments) for _, tool, arguments in distinct):
            distinct.append((kind, *call))
    return distinct


def spoken_actions(text: str, admissible: Any) -> list[str]:
    """Return the distinct published actions that stand alone on a line of a text, as in `Action: open door 1.`"""
    lines = [re.sub(r"^[\W_]*(?:\w+:)?[\W_]*|[\W_]+$", "", line).lower() for line in text.splitlines()]
    return sorted({action for action in admissible for line in lines if line == action.lower()})


def repaired_object(raw: str, schema: Any) -> dict[str, Any] | None:
    """Return the arguments that a broken JSON text can only mean, or None: mends quotes, commas, closers, fences."""
    text = raw.strip().strip("`").strip().removeprefix("json").strip()
    text = re.sub(r",\s*([}\]])", r"\1", text)
    texts = [text, text + "}", text + '"}', text.replace("'", '"'), text.replace("'", '"') + "}", "{" + text + "}"]
    fitting = [
        value for attempt in texts for value in json_objects(attempt)[:1] if is_complete(value, schema) and value
    ]
    return fitting[0] if fitting and all(value == fitting[0] for value in fitting) else None
