"""The names that kubelet and attach-detach controller have for a CSI volume on a node. Pure.

Both must come to them alone: the controller makes the VolumeAttachment, the kubelet looks for it.
"""

from __future__ import annotations

import hashlib

from podling.model.types.storage import CSIDriverSpec

PLUGIN = "kubernetes.io/csi"
MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach"
"""The annotation of a node whose volumes the controller attaches."""


def unique_name(driver: str, handle: str) -> str:
    """As `volumesInUse` and `volumesAttached` of a node have it."""
    return f"{PLUGIN}/{driver}^{handle}"


def attachment_name(driver: str, handle: str, node: str) -> str:
    """Of the VolumeAttachment of a volume to a node."""
    return f"csi-{hashlib.sha256(f'{handle}{driver}{node}'.encode()).hexdigest()}"


def attach_required(spec: CSIDriverSpec | None) -> bool:
    """Of the CSIDriver, None where there is none: its volumes are attached."""
    return spec is None or spec.attach_required is None or spec.attach_required
