"""What a control plane of another version cannot take for granted of a node: `status.declaredFeatures`. Pure.

Only what is new in Kubernetes v1.36 is declared; what a release later is everybody's leaves the list.
"""

from __future__ import annotations

from podling.model.gates import Gates

IN_PLACE_RESIZE = "InPlacePodVerticalScaling"
_ALWAYS = ("ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits")
_WITH_RESIZE = ("InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers")


def declared_features(gates: Gates) -> list[str]:
    """Sorted, as control planes want them."""
    return sorted((*_ALWAYS, *(_WITH_RESIZE if gates.enabled(IN_PLACE_RESIZE) else ())))
