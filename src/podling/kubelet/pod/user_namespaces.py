"""The user namespaces of pods (`hostUsers: false`): which ids of the node each pod gets.

Each such pod gets 65,536 consecutive ids that begin at a multiple of 65,536. The node's own first range is
never given out, and no two pods share one. The mapping is written to the pod's directory in Kubernetes'
format before the sandbox is created. That file alone reserves the range: it survives the kubelet, and is
removed with the directory.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFeatures
from podling.kubelet.pod.directories import stored_pods
from podling.kubelet.pod.faults import ConfigError
from podling.model.codec.fields import Part, always
from podling.model.codec.json import decode, encode
from podling.model.errors import StatusError
from podling.model.types.pod import Pod

FILE = "userns"
LENGTH = 1 << 16
RANGES = (1 << 32) // LENGTH - 2
"""The first is the node's, and the last has the id that means nobody."""


class IdMapping(Part):
    host_id: int = msgspec.field(default_factory=int, name="hostId")
    container_id: int = msgspec.field(default_factory=int, name="containerId")
    length: int = always(int)


class WrittenMappings(Part):
    uid_mappings: list[IdMapping] = always(list)
    gid_mappings: list[IdMapping] = always(list)


def check_handler(features: RuntimeFeatures, handler: str) -> None:
    """Raises ConfigError when the runtime cannot give a pod users of its own."""
    if handler in features.user_namespaces:
        return
    who = f'RuntimeClass handler "{handler}"' if handler else "runtime"
    message = f"can't set `spec.hostUsers: false`, {who} does not support user namespaces"
    if handler not in features.handlers:
        message += f': the handler "{handler}" is not known'
    raise ConfigError(message)


def user_namespace(
    pods_dir: Path, pod: Pod, choose: Callable[[int], int] = secrets.randbelow
) -> pb.UserNamespace:
    """The pod's ids, reserved at the first call; `choose(n)` returns a random number below n. Raises
    ConfigError and OSError."""
    if pod.spec.host_users is not False:
        return pb.UserNamespace(mode=pb.NODE)
    uid = pod.metadata.uid
    first = _first_id(pods_dir, uid)
    if first is None:
        first = _free(pods_dir, choose)
        _write(pods_dir / uid / FILE, first)
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


def _write(file: Path, first: int) -> None:
    mapping = IdMapping(host_id=first, container_id=0, length=LENGTH)
    file.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_bytes(encode(WrittenMappings(uid_mappings=[mapping], gid_mappings=[mapping])))
    fresh.rename(file)
