"""Static pods from manifest files: reads a directory (or one file) again whenever it changes, and parses it.

inotify only tells that something changed; then all files are read, so the kind of event does not matter. A
file that is no valid pod is logged and does not affect the others.

The API server's defaults are applied here, and fields that need an API server are refused. A pod's name and
uid depend on the node and the file only, so a restarted kubelet recognizes its pods (R-INIT-11), and a
changed file is another pod.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml
from asyncinotify import Mask

from podling.kubelet.cri_config.environment import referenced_objects
from podling.kubelet.files.descriptors import open_regular
from podling.kubelet.plan.admission import CONFIG_SOURCE
from podling.kubelet.pod.containers import all_containers
from podling.model.codec.json import encode, from_data
from podling.model.codec.yaml import PythonLoader
from podling.model.errors import StatusError
from podling.model.rules.defaults import default_pod
from podling.model.rules.placement import NO_EXECUTE
from podling.model.time import Clock, rfc3339
from podling.model.types.pod import Pod, PodSpec, Toleration
from podling.model.types.pod_status import PodStatus
from podling.process.directories import Happened, followed

FILE_SOURCE = "file"
CONFIG_HASH = "kubernetes.io/config.hash"
CONFIG_SEEN = "kubernetes.io/config.seen"

log = logging.getLogger(__name__)

LOOK_AGAIN = 20.0
"""Seconds until a missing directory is looked for again."""
_CHANGES = (
    Mask.CLOSE_WRITE
    | Mask.MOVED_TO
    | Mask.MOVED_FROM
    | Mask.DELETE
    | Mask.CREATE
    | Mask.ATTRIB
    | Mask.DELETE_SELF
    | Mask.MOVE_SELF
)
_GONE = Mask.IGNORED | Mask.DELETE_SELF | Mask.MOVE_SELF
LONGEST = 10 * 1024 * 1024
"""In bytes, of one file: Kubernetes' kubelet reads no more."""


class ManifestError(ValueError):
    """The file has no pod that can run as a static pod; the message says why."""


def static_pod(text: bytes, file: Path, node_name: str, seen: str) -> Pod:
    """The static pod of a manifest; `seen` (RFC 3339) goes to its annotation config.seen. Raises
    ManifestError."""
    try:
        data: Any = yaml.load(text, PythonLoader)
    # ValueError: text that is no UTF-8, and a scalar that is not what its tag says.
    except (yaml.YAMLError, ValueError) as error:
        raise ManifestError(f"not YAML or JSON: {error}") from error
    if not isinstance(data, dict) or (data.get("apiVersion"), data.get("kind")) != ("v1", "Pod"):
        raise ManifestError("not a Pod of v1")
    try:
        pod = from_data(data, Pod)
    except StatusError as error:
        raise ManifestError(error.message) from error
    if not pod.metadata.name or not pod.spec.containers:
        raise ManifestError("a pod needs a name and containers")
    if fault := next(_needs_a_server(pod.spec), None):
        raise ManifestError(f"a static pod may not refer to {fault}")
    meta = pod.metadata
    if not meta.uid:
        said = f"host:{node_name}file:{file}".encode() + encode(pod)
        meta.uid = hashlib.md5(said, usedforsecurity=False).hexdigest()
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
    # As in Kubernetes: a static pod belongs to its node, and no taint evicts it from there.
    everything = Toleration(operator="Exists", effect=NO_EXECUTE)
    if everything not in pod.spec.tolerations:
        pod.spec.tolerations = [*pod.spec.tolerations, everything]
    pod.status = PodStatus(phase="Pending")
    return pod


def _needs_a_server(spec: PodSpec) -> Iterator[str]:
    """The references that only an API server could resolve; static pods must run without one."""
    if spec.service_account_name or spec.service_account:
        yield "a service account"
    if spec.image_pull_secrets:
        yield "image pull secrets"
    if spec.resource_claims:
        yield "resource claims"
    if spec.ephemeral_containers:
        yield "ephemeral containers"
    for _, container in all_containers(Pod(spec=spec)):
        config_maps, secrets = referenced_objects(container)
        yield from (f'the configmap "{name}"' for name in sorted(config_maps))
        yield from (f'the secret "{name}"' for name in sorted(secrets))
    for volume in spec.volumes:
        given: dict[str, object] = {
            "a configmap": volume.config_map,
            "a secret": volume.secret,
            "a persistent volume claim": volume.persistent_volume_claim or volume.ephemeral,
        }
        sources = volume.projected.sources if volume.projected else ()
        if any(source.downward_api is None for source in sources):
            given["objects of the API"] = volume.projected
        named = (what for what, source in given.items() if source is not None)
        yield from (f'{what} (volume "{volume.name}")' for what in named)


class _Changes:
    """`is_last`: the directory is gone, and nothing more will be told of it."""

    def __init__(self) -> None:
        self.happened = asyncio.Event()
        self.is_last = False

    def tell(self, happened: Happened) -> None:
        self.is_last = self.is_last or bool(happened.mask & _GONE)
        self.happened.set()


class ManifestDirectory:
    """The manifests below `path`, a directory or one file."""

    def __init__(self, path: Path, node_name: str, clock: Clock) -> None:
        self._path = path
        self._node_name = node_name
        self._clock = clock

    async def follow(self) -> AsyncGenerator[list[Pod], None]:
        """All static pods, now and after every change. Never ends by itself."""
        while True:
            directory = self._path.parent if self._path.is_file() else self._path
            changes = _Changes()
            with ExitStack() as following:
                try:
                    following.enter_context(followed(directory, _CHANGES | Mask.ONLYDIR, changes.tell))
                except OSError as error:
                    log.warning("manifests of static pods: %s: %s", directory, error)
                    yield []
                    await asyncio.sleep(LOOK_AGAIN)
                    continue
                # Read strictly after the watch was set, never before: else a file in between is missed.
                yield await self._read_now()
                while not changes.is_last:
                    await changes.happened.wait()
                    # However much happens during a read, one more shows all of it.
                    changes.happened.clear()
                    yield await self._read_now()

    async def _read_now(self) -> list[Pod]:
        return await asyncio.to_thread(self.read, rfc3339(self._clock.now()))

    def read(self, seen: str) -> list[Pod]:
        """In the order of their files' names. Blocking."""
        files = [self._path]
        if not self._path.is_file():
            try:
                files = sorted(file for file in self._path.iterdir() if not file.name.startswith("."))
            except OSError:
                files = []
        pods: dict[tuple[str, str], Pod] = {}
        for file in filter(Path.is_file, files):
            try:
                with open_regular(file, follow=True) as opened:
                    content = opened.read(LONGEST + 1)
                if len(content) > LONGEST:
                    raise ManifestError(f"longer than {LONGEST} bytes")
                pod = static_pod(content, file, self._node_name, seen)
            # RecursionError: lists in lists, or one that contains itself.
            except (ManifestError, OSError, RecursionError) as error:
                log.warning("static pod of %s: %s", file, error)
                continue
            pods.setdefault((pod.metadata.namespace, pod.metadata.name), pod)
        return list(pods.values())
