"""NamespaceLifecycle: no object is created in a namespace that does not exist or is terminating."""

from __future__ import annotations

from typing import Any

from podling.apiserver.admission.chain import Attributes
from podling.apiserver.request.objects import Find
from podling.model.errors import Cause, StatusError, not_found
from podling.model.types.core import Namespace

KEPT = frozenset({"default", "kube-public", "kube-system"})
"""Namespaces that must not be deleted."""


class NamespaceLifecycle:
    def __init__(self, find: Find) -> None:
        self._find = find

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if attributes.is_for("namespaces", "DELETE") and attributes.name in KEPT:
            raise attributes.forbidden("this namespace may not be deleted")
        if not attributes.namespace or not attributes.resource.namespaced or attributes.operation == "DELETE":
            return
        namespace = self._find(Namespace, "", attributes.namespace)
        if namespace is None:
            raise not_found("namespaces", attributes.namespace)
        ending = namespace.metadata.deletion_timestamp or namespace.status.phase == "Terminating"
        if ending and attributes.operation == "CREATE" and not attributes.subresource:
            raise _terminating(attributes)


def _terminating(attributes: Attributes) -> StatusError:
    name = attributes.namespace
    refused = attributes.forbidden(
        f"unable to create new content in namespace {name} because it is being terminated"
    )
    refused.causes = (
        Cause("NamespaceTerminating", f"namespace {name} is being terminated", "metadata.namespace"),
    )
    return refused
