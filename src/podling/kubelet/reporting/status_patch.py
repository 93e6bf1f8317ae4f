"""The smallest patch from one pod status to another, for a strategic merge patch of `status`. Pure.

Only what changed is sent, and of the conditions only the changed ones: those that others own (PodScheduled,
readiness gates) are never touched, and two writers never undo each other's work.
"""

from __future__ import annotations

from typing import Any

from podling.model.json import to_data
from podling.model.pod_status import PodStatus

STRATEGIC_MERGE = "application/strategic-merge-patch+json"

_MERGED = {"conditions": "type", "hostIPs": "ip", "podIPs": "ip"}


def status_patch(old: PodStatus, new: PodStatus, uid: str) -> dict[str, Any] | None:
    """The patch body with the pod's uid as precondition; None when there is nothing to say."""
    before, after = to_data(old), to_data(new)
    changed = {
        name: _change(name, before.get(name), after.get(name))
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    }
    if not changed:
        return None
    for name in changed.keys() & _MERGED.keys():
        changed[f"$setElementOrder/{name}"] = [
            {_MERGED[name]: item[_MERGED[name]]} for item in after.get(name, ())
        ]
    return {"metadata": {"uid": uid}, "status": changed}


def _change(name: str, before: Any, after: Any) -> Any:
    key = _MERGED.get(name)
    if key is None:
        return after
    old = {item[key]: item for item in before or ()}
    new = {item[key]: item for item in after or ()}
    gone = [{"$patch": "delete", key: value} for value in old if value not in new]
    return [_item(old.get(value, {}), item) for value, item in new.items() if old.get(value) != item] + gone


def _item(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Merged into the item that is there: what it no longer has must be taken away by name."""
    return {**dict.fromkeys(before), **after}
