"""What pods that the API no longer knows have left on the node: containers, directories, logs, cgroups.

What still runs is ended by a worker, for a Pod made from labels and annotations: preStop hooks run, within
the second of grace that Kubernetes' kubelet gives such pods. Files and cgroups are removed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from podling.kubelet.config import KubeletConfig
from podling.kubelet.cri_config.container import CONTAINER_TYPE, restored
from podling.kubelet.files import tree
from podling.kubelet.host.cgroups import Cgroups
from podling.kubelet.pod.containers import ALWAYS, ContainerType, type_of_label
from podling.kubelet.pod.directories import PodDirectory, stored_pods
from podling.kubelet.volumes.csi_records import records_of
from podling.kubelet.worker.observe import RuntimePod
from podling.model.types.container import Container, EphemeralContainer
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodSpec

log = logging.getLogger(__name__)


def orphan(uid: str, found: RuntimePod, node_name: str) -> Pod:
    """As much of a pod as was written on what it left."""
    meta = ObjectMeta(name=found.name, namespace=found.namespace, uid=uid)
    spec = PodSpec(node_name=node_name)
    # The newest definition of each counts, and sidecars end in the order opposite to that of their start.
    newest_last = sorted(found.statuses, key=lambda status: status.created_at)
    for status in {status.metadata.name: status for status in newest_last}.values():
        kind = type_of_label(status.labels.get(CONTAINER_TYPE, ""))
        if kind is ContainerType.EPHEMERAL:
            spec.ephemeral_containers.append(restored(status, EphemeralContainer))
        elif kind is ContainerType.REGULAR:
            spec.containers.append(restored(status, Container))
        else:
            container = restored(status, Container)
            container.restart_policy = ALWAYS if kind is ContainerType.SIDECAR else None
            spec.init_containers.append(container)
    return Pod(metadata=meta, spec=spec)


def remove_leftovers(config: KubeletConfig, cgroups: Cgroups, known: Collection[str]) -> list[str]:
    """Files and cgroups of pods that are not `known`. Returns the pods that have left volumes which only
    their drivers can take back. Blocking: run it off the event loop."""
    of_drivers = []
    for uid in stored_pods(config.pods_dir):
        if uid in known:
            continue
        directory = PodDirectory(config.pods_dir, config.log_dir, "", "", uid)
        try:
            if any(records_of(directory)):
                of_drivers.append(uid)
            else:
                directory.remove()
        except OSError as error:
            log.warning("what pod %s left cannot be removed: %s", uid, error)
    with suppress(FileNotFoundError):
        for entry in list(os.scandir(config.log_dir)):
            uid = entry.name.rpartition("_")[2]
            # Namespace, name and uid: anything else in there was not made by a kubelet.
            if entry.name.count("_") == 2 and entry.is_dir(follow_symlinks=False) and uid not in known:
                with suppress(OSError):
                    tree.remove(Path(entry.path))
    for uid in cgroups.pods() - set(known):
        cgroups.remove(uid)
    return of_drivers
