"""When happened what a controller of endpoints writes of, for the annotation
`endpoints.kubernetes.io/last-change-trigger-time`: a proxy measures from it how late it is.

That is the time at which a pod became ready or unready, or the service was made; of several that have changed
since the service was looked at last, the first. What has no such time, such as a change of labels, has none.
"""

from __future__ import annotations

from collections.abc import Iterable

from podling.controllers.controller import Key
from podling.model.types.pod import Pod
from podling.model.types.service import Service

ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time"


class TriggerTimes:
    """Keeps for each service what it was told last."""

    def __init__(self) -> None:
        self._pods: dict[Key, dict[str, str]] = {}

    def forget(self, key: Key) -> None:
        self._pods.pop(key, None)

    def annotated(self, key: Key, service: Service, pods: Iterable[Pod]) -> dict[str, str]:
        """The annotation for what is written now, none if nothing that has a time has changed. `pods` are
        those that the service selects. Ask once for each time that the service is looked at, whether or not
        something is written."""
        before, now = self._pods.get(key), {pod.metadata.name: at for pod in pods if (at := _at(pod))}
        self._pods[key] = now
        if before is None:
            at = service.metadata.creation_timestamp
        else:
            changed = [at for name, at in now.items() if name not in before or at > before[name]]
            at = min(changed, default="")
        return {ANNOTATION: at} if at else {}


def _at(pod: Pod) -> str:
    """As the API writes it, so that the order of texts is that of times."""
    times = (one.last_transition_time for one in pod.status.conditions if one.type == "Ready")
    return next(times, None) or ""
