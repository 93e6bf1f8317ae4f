"""NodeDeclaredFeatureValidator: a running pod is changed only in ways its node says it can follow."""

from __future__ import annotations

from typing import Any

from podling.apiserver.admission.plugin import Attributes, Find
from podling.model.declared_features import needed_to_change
from podling.model.node import Node


class NodeDeclaredFeatures:
    def __init__(self, find: Find) -> None:
        self._find = find

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        is_pod = (attributes.resource.group, attributes.resource.plural) == ("", "pods")
        if not is_pod or attributes.operation != "UPDATE" or attributes.subresource not in ("", "resize"):
            return
        name = new.spec.node_name
        needed = needed_to_change(new.spec, old.spec) if name else frozenset()
        if not needed:
            return
        node = self._find(Node, "", name)
        if node is None:
            raise attributes.forbidden(f'node "{name}" not found')
        if missing := sorted(needed - set(node.status.declared_features)):
            listed = ", ".join(missing)
            why = f'pod update requires features {listed} which are not available on node "{name}"'
            raise attributes.forbidden(why)
