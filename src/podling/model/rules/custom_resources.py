"""What API server and controllers alike do with a CustomResourceDefinition."""

from __future__ import annotations

import json
import re
from datetime import datetime

from podling.model.time import rfc3339
from podling.model.types.apiextensions import CustomResourceDefinition, CustomResourceDefinitionCondition

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of a definition whose custom resources are to be deleted first."""

APPROVAL = "api-approved.kubernetes.io"
PULL_REQUEST = "see https://github.com/kubernetes/enhancements/pull/1111"
PROTECTED = ("k8s.io", "kubernetes.io")
"""Groups, and the ends of groups, in which an API must be approved."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]")


def condition_of(obj: CustomResourceDefinition, type_: str) -> CustomResourceDefinitionCondition | None:
    return next((one for one in obj.status.conditions or () if one.type == type_), None)


def set_condition(
    obj: CustomResourceDefinition, new: CustomResourceDefinitionCondition, now: datetime
) -> None:
    """Write a condition, whose time is that of its last change."""
    standing = condition_of(obj, new.type)
    is_same = standing is not None and standing.status == new.status and standing.last_transition_time
    new.last_transition_time = standing.last_transition_time if standing and is_same else rfc3339(now)
    others = list(obj.status.conditions or ())
    if standing is None:
        obj.status.conditions = [*others, new]
    else:
        obj.status.conditions = [new if one is standing else one for one in others]


def is_protected(group: str) -> bool:
    return group in PROTECTED or group.endswith(tuple(f".{end}" for end in PROTECTED))


def approval(annotations: dict[str, str]) -> tuple[str, str]:
    """Missing, Unapproved, Approved or Invalid, and what is said of it."""
    said = annotations.get(APPROVAL, "")
    if not said:
        return "Missing", f'protected groups must have approval annotation "{APPROVAL}", {PULL_REQUEST}'
    if said.startswith("unapproved"):
        return "Unapproved", f"not approved: {json.dumps(said)}"
    if _URL.match(said):
        return "Approved", f"approved in {said}"
    why = (
        f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a reason starting '
        f'with "unapproved", {PULL_REQUEST}'
    )
    return "Invalid", why
