"""Owners that are named twice are kept once, and whoever sent them is told."""

from __future__ import annotations

from typing import Any

import msgspec

from podling.apiserver.context import RequestContext
from podling.model.meta import OwnerReference

REPEATED = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, "
    "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)
REPEATED_AFTER_ADMISSION = REPEATED.replace("entries;", "entries after mutating admission happens;")
"""Kubernetes looks at what a patch makes of an object only then, and says so."""


def drop_repeated_owners(context: RequestContext, obj: Any, complaint: str = REPEATED) -> None:
    kept: dict[tuple[Any, ...], OwnerReference] = {}
    repeated = [
        owner.uid
        for owner in obj.metadata.owner_references
        if kept.setdefault(msgspec.structs.astuple(owner), owner) is not owner
    ]
    if not repeated:
        return
    obj.metadata.owner_references = list(kept.values())
    warning = complaint + ", ".join(repeated)
    if warning not in context.warnings:
        context.warnings.append(warning)
