"""Completes a value that lacks only the fixed beginning of its pattern: "#0000" under `^O-[0-9]{4}$` is O-0000.

A harness rule carries these functions word for word, so that a rule repairs exactly what a signal counted:
standard library only, no module state, no annotations that need an import.
"""

import re
from typing import Any


def published_pattern(schema: dict[str, Any]) -> Any:
    """Return the pattern that a parameter's schema gives, as `pattern` or within its description, or None."""
    said = re.search(r"\^\S+\$", str(schema.get("description", "")))
    return schema.get("pattern", said.group() if said else None)


def fits(value: object, pattern: str) -> bool:
    """Say whether a value has a pattern somewhere, as JSON schemas mean it; what cannot be compiled fits all."""
    try:
        return re.search(pattern, str(value)) is not None
    except re.error:
        return True


def fixed_and_free(pattern: str) -> tuple[str, str] | None:
    """Split `^O-[0-9]{4}$` into its literal beginning and the pattern of the rest; None for any other form."""
    piece = r"(?:\[[^\]^]+\]|\\[dw])(?:\{\d+(?:,\d*)?\}|\+)?"
    match = re.fullmatch(rf"\^([\w#:/-]+)((?:{piece})+)\$", pattern)
    return (match[1], match[2]) if match else None


def completed(value: object, pattern: object) -> str | None:
    """Return the one value of the pattern that `value` can mean, or None where it fits already, or none or several do.

    The value must hold the free part as a word of its own, bare ("order 0000") or behind the fixed letters
    however written ("o0000"); other letters joined to it ("S-0000") mean something else.
    """
    is_word = isinstance(value, str | int) and not isinstance(value, bool)
    if not is_word or not isinstance(pattern, str) or fits(value, pattern):
        return None
    parts = fixed_and_free(pattern)
    if parts is None:
        return None
    fixed, free = parts
    letters = re.escape(re.sub(r"[\W_]+$", "", fixed))
    words = [re.sub(r"^[\W_]+|[\W_]+$", "", word) for word in str(value).split()]
    found = [re.fullmatch(rf"(?:(?i:{letters})[\W_]*)?({free})", word) for word in words]
    wholes = {fixed + match[1] for match in found if match is not None}
    return min(wholes) if len(wholes) == 1 else None
