"""Makes the claims that pods bring with them (`volumes[].ephemeral`), as Kubernetes' ephemeral-volume
controller. A claim is its pod's and goes with it; a claim of the name that is not is left alone, and the pod
waits.
"""

from __future__ import annotations

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key
from podling.controllers.storage.claimers import Claimers
from podling.model.errors import StatusError
from podling.model.rules.references import volume_claim_of
from podling.model.types.meta import ObjectMeta, controller_reference
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.volume import Volume

EPHEMERAL = "ephemeral_volume"
"""Who tells the events."""


class EphemeralVolumes:
    name = "ephemeral-volume-controller"

    def __init__(
        self,
        client: Client,
        pods: Informer[Pod],
        claims: Informer[PersistentVolumeClaim],
        events: EventRecorder,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._claimers = Claimers(pods)
        self._client, self._pods, self._claims, self._events = client, pods, claims, events
        pods.subscribe(self._pod_changed)
        claims.subscribe(self._claim_changed)

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.get(*key)
        if pod is None or pod.metadata.deletion_timestamp:
            return
        for volume in pod.spec.volumes:
            if volume.ephemeral is None:
                continue
            try:
                await self._have(pod, volume)
            except StatusError as error:
                self._say(pod, volume, error.message)
                raise

    async def _have(self, pod: Pod, volume: Volume) -> None:
        """Raises StatusError."""
        name, namespace = volume_claim_of(pod, volume) or "", pod.metadata.namespace
        known = self._claims.get(namespace, name)
        if known is not None:
            if not any(
                ref.controller and ref.uid == pod.metadata.uid for ref in known.metadata.owner_references
            ):
                owner = f"{namespace}/{pod.metadata.name}"
                self._say(
                    pod, volume, f"PVC {namespace}/{name} was not created for pod {owner} (pod is not owner)"
                )
            return
        template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
        if template is None:
            return
        meta = ObjectMeta(
            name=name,
            namespace=namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            owner_references=[controller_reference(pod)],
        )
        try:
            await self._client.create(PersistentVolumeClaim(metadata=meta, spec=template.spec))
        except StatusError as error:
            # The informer will show whose it is.
            if error.reason != "AlreadyExists":
                raise

    def _say(self, pod: Pod, volume: Volume, why: str) -> None:
        self._events.warning(pod, "FailedBinding", f"ephemeral volume {volume.name}: {why}")

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and (old is None or old.metadata.uid != new.metadata.uid):
            self._add(new)

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        """A claim that is gone, or one that stands in a pod's way."""
        one = new or old
        assert one is not None
        if old is not None and new is not None:
            return
        for pod in self._claimers.of(one.metadata.namespace, one.metadata.name):
            self._add(pod)

    def _add(self, pod: Pod) -> None:
        if any(volume.ephemeral is not None for volume in pod.spec.volumes):
            self.queue.add((pod.metadata.namespace, pod.metadata.name))
