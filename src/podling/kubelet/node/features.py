"""Features: what the node declares in `status.declaredFeatures`, and what the runtime supports.

Only what is new in Kubernetes v1.36 is declared; a feature that all supported versions have leaves the list.
"""

from __future__ import annotations

from podling.cri.interface import Runtime, RuntimeFeatures
from podling.model.gates import Gates

IN_PLACE_RESIZE = "InPlacePodVerticalScaling"
_ALWAYS = ("ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits")
_WITH_RESIZE = ("InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers")


def declared_features(gates: Gates) -> list[str]:
    """Sorted, as control planes want them."""
    return sorted((*_ALWAYS, *(_WITH_RESIZE if gates.enabled(IN_PLACE_RESIZE) else ())))


class KnownFeatures:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._known: RuntimeFeatures | None = None

    async def get(self) -> RuntimeFeatures:
        """Raises RuntimeFault."""
        if self._known is None:
            self._known = await self._runtime.features()
        return self._known

    def forget(self) -> None:
        self._known = None
