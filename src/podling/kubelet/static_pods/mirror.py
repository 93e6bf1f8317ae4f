"""The mirror of a static pod: the object by which the API server and its users know it. Pure.

A mirror is made from the pod and never the other way round. Whoever deletes it gets another; whoever changes
the pod's file gets a mirror of the new pod.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from podling.kubelet.planning.admission import MIRROR
from podling.kubelet.static_pods.manifest import CONFIG_HASH
from podling.model.meta import ObjectMeta, OwnerReference
from podling.model.node import Node
from podling.model.pod import Pod
from podling.model.pod_status import PodStatus


class MirrorStep(Enum):
    """What the mirror of a pod needs next."""

    NOTHING = "nothing"
    CREATE = "create"
    DELETE = "delete"


def is_mirror(pod: Pod) -> bool:
    return MIRROR in pod.metadata.annotations


def mirrors(mirror: Pod, pod: Pod) -> bool:
    """Whether it is of this pod as its file is now."""
    return mirror.metadata.annotations.get(MIRROR) == pod.metadata.annotations.get(CONFIG_HASH)


def next_step(pod: Pod | None, mirror: Pod | None) -> MirrorStep:
    """`pod` is the static pod there should be, `mirror` what the server has in its name."""
    if mirror is None:
        return MirrorStep.CREATE if pod is not None else MirrorStep.NOTHING
    if pod is None or mirror.metadata.deletion_timestamp or not mirrors(mirror, pod):
        return MirrorStep.DELETE
    return MirrorStep.NOTHING


def mirror_of(pod: Pod, node: Node) -> Pod:
    """What is sent to the server. The Node owns it, so that it goes with the node."""
    meta = pod.metadata
    owner = OwnerReference(
        api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid, controller=True
    )
    return msgspec.structs.replace(
        pod,
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            labels=meta.labels,
            annotations={**meta.annotations, MIRROR: meta.annotations[CONFIG_HASH]},
            owner_references=[owner],
        ),
        status=PodStatus(),
    )
