"""Plain data as Go writes it in errors: the type of a value (`%T`), and its syntax (`%#v`)."""

from __future__ import annotations

import json
from typing import Any

GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def go_type(value: Any) -> str:
    return GO_TYPES.get(type(value), "<nil>")


def go_syntax(value: Any) -> str:
    match value:
        case list():
            return f"{go_type(value)}{{{', '.join(map(go_syntax, value))}}}"
        case dict():
            members = (f"{go_syntax(name)}:{go_syntax(below)}" for name, below in sorted(value.items()))
            return f"{go_type(value)}{{{', '.join(members)}}}"
        case None:
            return "interface {}(nil)"
    return json.dumps(value, ensure_ascii=False)
