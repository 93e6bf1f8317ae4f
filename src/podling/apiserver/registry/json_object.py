"""Why Go cannot read something as a JSON object, in Go's words."""

from __future__ import annotations

import json
from typing import Any

_WHERE = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Extra data": "after top-level value",
}
_TYPES = {list: "array", str: "string", bool: "bool", float: "number"}


def fault_of_json_object(data: bytes) -> str:
    """Empty when it is an object, or null, which Go reads as one that is empty."""
    text = data.decode(errors="replace")
    try:
        # A number is read as one that fits, however long it is.
        found: Any = json.loads(text, parse_int=float)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg not in _WHERE:
            return "unexpected end of JSON input"
        return f"invalid character {text[error.pos]!r} {_WHERE[error.msg]}"
    except RecursionError:
        return "exceeded max depth"
    if found is None or isinstance(found, dict):
        return ""
    return f"json: cannot unmarshal {_TYPES[type(found)]} into Go value of type map[string]interface {{}}"
