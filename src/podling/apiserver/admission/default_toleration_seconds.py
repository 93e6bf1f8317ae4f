"""DefaultTolerationSeconds: a pod stays five minutes on a node that is not ready or cannot be reached."""

from __future__ import annotations

from typing import Any

from podling.apiserver.admission.plugin import Attributes
from podling.model.scheduling import Toleration

NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
SECONDS = 300


class DefaultTolerationSeconds:
    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if not attributes.is_for("pods", "CREATE", "UPDATE"):
            return
        tolerations: list[Toleration] = new.spec.tolerations
        missing = [key for key in NODE_TAINTS if not any(_covers(one, key) for one in tolerations)]
        new.spec.tolerations = [*tolerations, *map(_default, missing)]


def _covers(toleration: Toleration, key: str) -> bool:
    return toleration.key in ("", key) and toleration.effect in ("", "NoExecute")


def _default(key: str) -> Toleration:
    return Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=SECONDS)
