"""Which fields belong to which endpoint of an object: to the object itself, or to a subresource of it.

Fields that an endpoint does not write, nobody manages through it.
"""

from __future__ import annotations

from podling.apiserver.apply.fieldset import Fields

_STATUS = "f:status"


def belonging(fields: Fields, subresource: str, has_status: bool) -> Fields:
    match subresource:
        case "status":
            return {element: fields[element] for element in (_STATUS, "f:metadata") if element in fields}
        case "ephemeralcontainers":
            found = _only(fields.get("f:spec", {}), "f:ephemeralContainers")
            return {"f:spec": found} if found else {}
        case "resize":
            found = _resized(fields.get("f:spec", {}))
            return {"f:spec": found} if found else {}
        case "finalize":
            return _only(fields, "f:spec")
        case _:
            return {e: below for e, below in fields.items() if e != _STATUS} if has_status else fields


def _resized(spec: Fields) -> Fields:
    """Resources and resize policies, of the pod and of each container."""
    found = _only(spec, "f:resources")
    for element in ("f:containers", "f:initContainers"):
        items = {
            key: _only(item, "f:resources") | _only(item, "f:resizePolicy")
            for key, item in spec.get(element, {}).items()
        }
        kept = {key: item for key, item in items.items() if item}
        if kept:
            found[element] = kept
    return found


def _only(fields: Fields, element: str) -> Fields:
    return {element: fields[element]} if element in fields else {}
