"""What a namespace that is being emptied says about what is left in it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podling.model.namespace import NamespaceCondition


def conditions(
    left: Mapping[str, int],
    finalizers: Mapping[str, int],
    errors: Sequence[str],
    before: Sequence[NamespaceCondition],
    now: str,
) -> list[NamespaceCondition]:
    """`left` counts objects by resource, `finalizers` objects by what holds them; `errors` of deleting."""
    said = [
        _condition("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", DISCOVERED),
        _condition("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", PARSED),
        _failure(errors),
        _remaining(left),
        _held(finalizers),
    ]
    standing = {condition.type: condition for condition in before}
    for condition in said:
        old = standing.get(condition.type)
        unchanged = old is not None and old.status == condition.status
        condition.last_transition_time = old.last_transition_time if old and unchanged else now
    return said


DISCOVERED = "All resources successfully discovered"
PARSED = "All legacy kube types successfully parsed"
DELETED = "All content successfully deleted, may be waiting on finalization"


def _condition(type: str, reason: str, message: str, *, status: str = "False") -> NamespaceCondition:
    return NamespaceCondition(type=type, status=status, reason=reason, message=message)


def _failure(errors: Sequence[str]) -> NamespaceCondition:
    type = "NamespaceDeletionContentFailure"
    if not errors:
        return _condition(type, "ContentDeleted", DELETED)
    message = f"Failed to delete all resource types, {len(errors)} remaining: {', '.join(errors)}"
    return _condition(type, "ContentDeletionFailed", message, status="True")


def _remaining(left: Mapping[str, int]) -> NamespaceCondition:
    type = "NamespaceContentRemaining"
    if not left:
        return _condition(type, "ContentRemoved", "All content successfully removed")
    listed = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(left.items()))
    return _condition(type, "SomeResourcesRemain", f"Some resources are remaining: {listed}", status="True")


def _held(finalizers: Mapping[str, int]) -> NamespaceCondition:
    type = "NamespaceFinalizersRemaining"
    if not finalizers:
        return _condition(type, "ContentHasNoFinalizers", "All content-preserving finalizers finished")
    listed = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    message = f"Some content in the namespace has finalizers remaining: {listed}"
    return _condition(type, "SomeFinalizersRemain", message, status="True")
