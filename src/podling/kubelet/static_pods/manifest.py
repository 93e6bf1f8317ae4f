"""From a manifest file to a static pod. Pure: the bytes are handed in.

The file says what a user would tell the API server; what that server would fill in is filled in here, and
what only a server could look up is refused. Name and uid follow from the node and the file alone, so that a
kubelet that comes back knows its pods again (R-INIT-11), and a changed file is another pod.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from podling.kubelet.container_types import all_containers
from podling.kubelet.planning.admission import CONFIG_SOURCE
from podling.kubelet.runtime_config.environment import referenced_objects
from podling.model.container import Container, EphemeralContainerCommon
from podling.model.errors import StatusError
from podling.model.json import encode, from_data
from podling.model.pod import Pod, PodSpec
from podling.model.pod_defaults import default_pod
from podling.model.pod_status import PodStatus
from podling.model.scheduling import Toleration
from podling.model.taints import NO_EXECUTE
from podling.model.volume import Volume

FILE_SOURCE = "file"
CONFIG_HASH = "kubernetes.io/config.hash"
CONFIG_SEEN = "kubernetes.io/config.seen"


class ManifestError(ValueError):
    """The file holds no pod that could run here; the message says why."""


class _Loader(yaml.SafeLoader):
    """What looks like a date is the string it is written as: JSON knows no dates."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def static_pod(text: bytes, file: Path, node_name: str, seen: str) -> Pod:
    """`seen` is when the file was read, as annotated. Raises ManifestError."""
    pod = _read(text)
    if not pod.metadata.name or not pod.spec.containers:
        raise ManifestError("a pod needs a name and containers")
    if fault := next(_needs_a_server(pod.spec), None):
        raise ManifestError(f"a static pod may not refer to {fault}")
    meta = pod.metadata
    meta.uid = meta.uid or _uid(pod, file, node_name)
    meta.name = f"{meta.name}-{node_name.lower()}"
    meta.namespace = meta.namespace or "default"
    meta.creation_timestamp = ""
    meta.annotations = {
        **meta.annotations,
        CONFIG_HASH: meta.uid,
        CONFIG_SEEN: seen,
        CONFIG_SOURCE: FILE_SOURCE,
    }
    default_pod(pod)
    pod.spec.node_name = node_name
    _tolerate_faults_of_the_node(pod.spec)
    pod.status = PodStatus(phase="Pending")
    return pod


def _read(text: bytes) -> Pod:
    try:
        data: Any = yaml.load(text, _Loader)
    # ValueError: text that is no UTF-8, and a scalar that is not what its tag says.
    except (yaml.YAMLError, ValueError) as error:
        raise ManifestError(f"not YAML or JSON: {error}") from error
    if not isinstance(data, dict) or (data.get("apiVersion"), data.get("kind")) != ("v1", "Pod"):
        raise ManifestError("not a Pod of v1")
    try:
        return from_data(data, Pod)
    except StatusError as error:
        raise ManifestError(error.message) from error


def _uid(pod: Pod, file: Path, node_name: str) -> str:
    said = f"host:{node_name}file:{file}".encode() + encode(pod)
    return hashlib.md5(said, usedforsecurity=False).hexdigest()


def _tolerate_faults_of_the_node(spec: PodSpec) -> None:
    """It has nowhere else to go."""
    everything = Toleration(operator="Exists", effect=NO_EXECUTE)
    if everything not in spec.tolerations:
        spec.tolerations = [*spec.tolerations, everything]


def _needs_a_server(spec: PodSpec) -> Iterator[str]:
    """What only the API server could give it: it runs also when there is none."""
    if spec.service_account_name or spec.service_account:
        yield "a service account"
    if spec.image_pull_secrets:
        yield "image pull secrets"
    if spec.resource_claims:
        yield "resource claims"
    if spec.ephemeral_containers:
        yield "ephemeral containers"
    for _, container in all_containers(Pod(spec=spec)):
        yield from _of_container(container)
    for volume in spec.volumes:
        yield from _of_volume(volume)


def _of_container(container: Container | EphemeralContainerCommon) -> Iterator[str]:
    config_maps, secrets = referenced_objects(container)
    yield from (f'the configmap "{name}"' for name in sorted(config_maps))
    yield from (f'the secret "{name}"' for name in sorted(secrets))


def _of_volume(volume: Volume) -> Iterator[str]:
    given = {
        "a configmap": volume.config_map,
        "a secret": volume.secret,
        "a persistent volume claim": volume.persistent_volume_claim or volume.ephemeral,
    }
    yield from (f'{what} (volume "{volume.name}")' for what, source in given.items() if source is not None)
    for source in volume.projected.sources if volume.projected else ():
        if source.downward_api is None:
            yield f'objects of the API (volume "{volume.name}")'
