"""Faults of the resource claims of a pod, and of what its containers use of them."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.field import all_invalid, duplicate, invalid, not_found, required
from podling.model import names
from podling.model.container import ResourceClaim
from podling.model.errors import Cause
from podling.model.pod import PodResourceClaim


def validate_claims(used: list[ResourceClaim], path: str, claims: frozenset[str]) -> Iterator[Cause]:
    """A claim is used whole or request by request, not both."""
    seen: set[str] = set()
    for i, claim in enumerate(used):
        where = f"{path}[{i}]"
        if not claim.name:
            yield required(where)
            continue
        yield from _validate_use(claim, where, seen)
        if claim.name not in claims:
            listed = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            yield not_found(where, claim.name, f"must be one of the names in pod.spec.resourceClaims{listed}")


def _validate_use(claim: ResourceClaim, path: str, seen: set[str]) -> Iterator[Cause]:
    if claim.name in seen:
        yield duplicate(path, claim.name)
        return
    key = claim.name
    if claim.request:
        yield from all_invalid(f"{path}.request", claim.request, names.dns1123_label(claim.request))
        key = f"{claim.name}/{claim.request}"
    if key in seen:
        yield duplicate(path, key)
    elif not claim.request:
        yield from (duplicate(path, key) for one in sorted(seen) if one.startswith(f"{claim.name}/"))
    seen.add(key)


def validate_pod_claims(claims: list[PodResourceClaim], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        where = f"{path}[{i}]"
        if not claim.name:
            yield required(f"{where}.name")
        elif claim.name in seen:
            yield duplicate(f"{where}.name", claim.name)
        else:
            yield from all_invalid(f"{where}.name", claim.name, names.dns1123_label(claim.name))
        seen.add(claim.name)
        yield from _validate_origin(claim, where)


def _validate_origin(claim: PodResourceClaim, path: str) -> Iterator[Cause]:
    name, template = claim.resource_claim_name, claim.resource_claim_template_name
    if name is not None and template is not None:
        why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield invalid(path, claim, why)
    if name is None and template is None:
        yield invalid(path, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
    for wire, value in (("resourceClaimName", name), ("resourceClaimTemplateName", template)):
        if value is not None:
            yield from all_invalid(f"{path}.{wire}", value, names.dns1123_subdomain(value))
