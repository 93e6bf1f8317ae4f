"""A container's configuration for the runtime, exactly as a kubelet writes it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.node.node_facts import NodeFacts
from podling.kubelet.pod_actions import StartContainer
from podling.kubelet.runtime_config.expansion import expand
from podling.kubelet.runtime_config.resources_config import linux_resources
from podling.kubelet.runtime_config.runtime_labels import container_annotations, container_labels
from podling.kubelet.runtime_config.security import NODES_USERS, UNSPECIFIED, ImageUser, container_security
from podling.model.container import EphemeralContainerCommon
from podling.model.pod import Pod


class ContainerInputs(msgspec.Struct, frozen=True):
    """What was found out for one start: `image` is the reference of the image present on the node,
    `environment` that of `environment.py`, `mounts` all of them, the termination message's and /etc/hosts
    included; `users` are its sandbox's.
    """

    image: str
    image_user: ImageUser = UNSPECIFIED
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    mounts: Sequence[pb.Mount] = ()
    users: pb.UserNamespace = msgspec.field(default_factory=lambda: NODES_USERS)


def container_config(
    pod: Pod,
    container: EphemeralContainerCommon,
    start: StartContainer,
    inputs: ContainerInputs,
    node: NodeFacts,
) -> pb.ContainerConfig:
    """Raises ConfigError when the container may not run so."""
    values = inputs.environment
    return pb.ContainerConfig(
        metadata=pb.ContainerMetadata(name=container.name, attempt=start.attempt),
        image=pb.ImageSpec(image=inputs.image, user_specified_image=container.image),
        command=[expand(word, values) for word in container.command],
        args=[expand(word, values) for word in container.args],
        working_dir=container.working_dir,
        envs=[pb.KeyValue(key=name, value=value) for name, value in values.items()],
        mounts=[_mapped(mount, inputs.users) for mount in inputs.mounts],
        labels=container_labels(pod, container.name, start.type),
        annotations=container_annotations(pod, container, start),
        log_path=log_path(container.name, start.attempt),
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        tty=container.tty,
        stop_signal=stop_signal(container),
        linux=pb.LinuxContainerConfig(
            resources=linux_resources(pod, container, start.type, node),
            security_context=container_security(
                pod, container, inputs.image_user, inputs.users, start.target_id, node.seccomp_dir
            ),
        ),
    )


def _mapped(mount: pb.Mount, users: pb.UserNamespace) -> pb.Mount:
    """Files belong to the same users inside as on the node, whichever ids the pod's users have there."""
    if not users.uids:
        return mount
    made = pb.Mount(uidMappings=users.uids, gidMappings=users.gids)
    made.MergeFrom(mount)
    return made


def stop_signal(container: EphemeralContainerCommon) -> str:
    """In CRI's spelling. A runtime that knows of none takes the image's."""
    name = container.lifecycle.stop_signal if container.lifecycle else None
    return name.replace("+", "PLUS").replace("-", "MINUS") if name else "RUNTIME_DEFAULT"


def log_path(name: str, attempt: int) -> str:
    """Relative to the pod's log directory."""
    return f"{name}/{attempt}.log"
