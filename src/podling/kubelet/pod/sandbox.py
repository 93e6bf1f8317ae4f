"""What a pod's sandbox and its containers are made from besides its spec: facts of the node, the runtime
handler, and the ids of its user namespace.

Each pod with a user namespace (`hostUsers: false`) gets 65,536 consecutive ids that begin at a multiple of
65,536. The node's own first range is never given out, and no two pods share one. The mapping is written to
the pod's directory in Kubernetes' format before the sandbox is created. That file alone reserves the range:
it survives the kubelet, and is removed with the directory.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from podling.client.client import Client
from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFeatures
from podling.kubelet.pod.containers import ConfigError
from podling.kubelet.pod.directories import replace_file, stored_pods
from podling.model.codec.fields import Part, always
from podling.model.codec.json import decode, encode
from podling.model.errors import StatusError
from podling.model.quantity import Quantity
from podling.model.types.node_k8s_io import RuntimeClass
from podling.model.types.pod import Pod

FILE = "userns"
"""In the pod's directory."""
LENGTH = 1 << 16
"""Of the range of ids of one pod."""
RANGES = (1 << 32) // LENGTH - 2
"""The first is the node's, and the last has the id that means nobody."""


class Resolver(msgspec.Struct, frozen=True):
    """The three kinds of lines of a resolv.conf."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class NodeFacts(msgspec.Struct, frozen=True):
    """What configurations of sandboxes and containers take from the node."""

    name: str
    ips: tuple[str, ...] = ()
    allocatable: Mapping[str, Quantity] = msgspec.field(default_factory=dict)
    """Stands in for a limit that a container does not set (resourceFieldRef)."""
    memory_bytes: int = 0
    """The node's capacity."""
    seccomp_dir: str = "/var/lib/kubelet/seccomp"
    """Where Localhost profiles are."""
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = "cluster.local"
    resolver: Resolver = Resolver()
    """The node's own, from its resolv.conf."""
    page_sizes: tuple[int, ...] = ()
    """Of the node's huge pages, in bytes."""
    swap_is_limited: bool = False
    """cgroup v1 counts swap together with memory, so the runtime is given a limit of both."""
    cgroup2_settings: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Files of every container's cgroup v2, with their content."""
    app_armor: bool = False
    """The kernel enforces AppArmor."""


class IdMapping(Part):
    host_id: int = msgspec.field(default_factory=int, name="hostId")
    container_id: int = msgspec.field(default_factory=int, name="containerId")
    length: int = always(int)


class WrittenMappings(Part):
    uid_mappings: list[IdMapping] = always(list)
    gid_mappings: list[IdMapping] = always(list)


async def runtime_handler(client: Client, pod: Pod) -> str:
    """The RuntimeClass's handler, "" without one. Raises StatusError (404 if the RuntimeClass does not exist)
    or OSError."""
    name = pod.spec.runtime_class_name
    if not name:
        return ""
    try:
        return (await client.get(RuntimeClass, name)).handler
    except StatusError as error:
        if error.code != 404:
            raise
        message = f'failed to get sandbox runtime: RuntimeClass.node.k8s.io "{name}" not found'
        raise StatusError(error.code, error.reason, message) from error


def check_handler(features: RuntimeFeatures, handler: str) -> None:
    """Raises ConfigError when the runtime cannot give a pod users of its own."""
    if handler in features.user_namespaces:
        return
    who = f'RuntimeClass handler "{handler}"' if handler else "runtime"
    message = f"can't set `spec.hostUsers: false`, {who} does not support user namespaces"
    if features.handlers and handler not in features.handlers:
        message += f': the handler "{handler}" is not known'
    raise ConfigError(message)


def user_namespace(
    pods_dir: Path, pod: Pod, choose: Callable[[int], int] = secrets.randbelow
) -> pb.UserNamespace:
    """The pod's ids, reserved at the first call; `choose(n)` returns a random number below n. Raises
    ConfigError and OSError."""
    if pod.spec.host_users is not False:
        return pb.UserNamespace(mode=pb.NODE)
    file = pods_dir / pod.metadata.uid / FILE
    first = _first_id(pods_dir, pod.metadata.uid)
    if first is None:
        first = _free(pods_dir, choose)
        written = IdMapping(host_id=first, container_id=0, length=LENGTH)
        replace_file(file, encode(WrittenMappings(uid_mappings=[written], gid_mappings=[written])))
    mapping = pb.IDMapping(host_id=first, container_id=0, length=LENGTH)
    return pb.UserNamespace(mode=pb.POD, uids=[mapping], gids=[mapping])


def _free(pods_dir: Path, choose: Callable[[int], int]) -> int:
    """The first id of a free range. It is chosen at random, because kubelets that share a machine do not know
    of each other's ranges."""
    taken = {_first_id(pods_dir, uid) for uid in stored_pods(pods_dir)}
    start = choose(RANGES)
    for index in range(RANGES):
        first = (1 + (start + index) % RANGES) * LENGTH
        if first not in taken:
            return first
    raise ConfigError("create user namespace: could not find an empty slot to allocate a user namespace")


def _first_id(pods_dir: Path, uid: str) -> int | None:
    """None when the pod has none."""
    file = pods_dir / uid / FILE
    try:
        written = decode(file.read_bytes(), WrittenMappings)
    except FileNotFoundError:
        return None
    except StatusError as error:
        raise ConfigError(f"user namespace: invalid user namespace mappings file {file}: {error}") from error
    if len(written.uid_mappings) != 1 or written.uid_mappings != written.gid_mappings:
        raise ConfigError(f"user namespace: {file} must have one mapping, the same for users and groups")
    (mapping,) = written.uid_mappings
    index, rest = divmod(mapping.host_id, LENGTH)
    if mapping.container_id or rest or mapping.length != LENGTH or not 1 <= index <= RANGES:
        raise ConfigError(
            f"user namespace: {file} does not map root and {LENGTH} ids from a multiple of that"
        )
    return mapping.host_id
