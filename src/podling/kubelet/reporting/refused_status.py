"""What is left of a status patch without what the API server has refused. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from podling.model.errors import Cause
from podling.model.json import to_data
from podling.model.pod_status import PodStatus

_STEP = re.compile(r"(\w+)(?:\[(\d+)])?")


def without_refused(
    patch: dict[str, Any], known: PodStatus, causes: Iterable[Cause], *, whole: bool
) -> dict[str, Any] | None:
    """`patch` as `status_patch` made it, `known` what the server has. Of a list of containers only those the
    causes name are left as the server has them, unless the field is to be left out `whole`. None when nothing
    is left, or nothing of the patch was named.
    """
    has, changed = to_data(known), dict(patch["status"])
    for field, index in (step for cause in causes for step in _STEP.findall(cause.field)):
        if field not in changed:
            continue
        kept = None if whole or not index else _with_standing(changed[field], has.get(field, []), int(index))
        if kept is None or kept == has.get(field, []):
            del changed[field]
            changed.pop(f"$setElementOrder/{field}", None)
        else:
            changed[field] = kept
    if not changed or changed == patch["status"]:
        return None
    return {**patch, "status": changed}


def _with_standing(
    new: list[dict[str, Any]], old: list[dict[str, Any]], index: int
) -> list[dict[str, Any]] | None:
    """A path counts in the old list or in the new one, whichever its rule looks at: both items are left. None
    where items have no names."""
    names = [items[index].get("name") for items in (old, new) if index < len(items)]
    if None in names:
        return None
    standing = {item["name"]: item for item in old}
    kept = [standing.get(item["name"]) if item["name"] in names else item for item in new]
    return [item for item in kept if item is not None]
