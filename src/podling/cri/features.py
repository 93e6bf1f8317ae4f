"""What a CRI v1 runtime says it can, or what follows from its version. Pure."""

from __future__ import annotations

import re

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFeatures

FIRST_WITH_IMAGES = (2, 1)
"""The containerd whose CRI mounts images."""


def told_features(version: pb.VersionResponse, status: pb.StatusResponse) -> RuntimeFeatures:
    """A runtime from before CRI 1.30 (containerd before 2.0) tells of no handlers at all."""
    handlers = status.runtime_handlers
    return RuntimeFeatures(
        handlers=frozenset(handler.name for handler in handlers),
        recursive_read_only=frozenset(h.name for h in handlers if h.features.recursive_read_only_mounts),
        user_namespaces=frozenset(h.name for h in handlers if h.features.user_namespaces),
        mounts_images=mounts_images(version),
        groups_policy=status.features.supplemental_groups_policy,
    )


def mounts_images(version: pb.VersionResponse) -> bool:
    """Nothing in CRI says so; containerd is the one that learnt it last."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version.runtime_version)[:2])
    return version.runtime_name != "containerd" or numbers >= FIRST_WITH_IMAGES
