"""Writes what was decided of a pod's claims, and waits until they are bound (kube-scheduler's PreBind of
VolumeBinding).

A volume that is there is given to its claim; of one that is to be made, the claim is told for which node. The
volume controller and the provisioner do the rest, and the pod waits for it as long as `WITHIN`.

The volume controller writes to new claims and volumes too, mostly just then. A write that it came before is
made again on what it left, if that is still what the decision was about; otherwise the pod is to be decided
anew.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informer
from podling.model.errors import StatusError
from podling.model.rules.volume_binding import BOUND_BY_CONTROLLER, SELECTED_NODE, is_bound, is_bound_to
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.references import ObjectReference
from podling.scheduler.info import Key
from podling.scheduler.volumes import Bindings, Decided, is_as_decided, key_of

WITHIN = 600.0
"""Seconds (kube-scheduler's bindTimeoutSeconds)."""


class VolumesError(Exception):
    """The claims of a pod are not bound. The message is kube-scheduler's."""


class VolumeWrites:
    def __init__(
        self,
        client: Client,
        claims: Informer[PersistentVolumeClaim],
        pods: Informer[Pod],
    ) -> None:
        self._client, self._claims, self._pods = client, claims, pods
        self._waiting: defaultdict[Key, set[asyncio.Event]] = defaultdict(set)
        claims.subscribe(self._claim_changed)
        pods.subscribe(self._pod_changed)

    async def bind(self, pod: Pod, bindings: Bindings, node: str) -> None:
        """Returns when all claims are bound. Raises VolumesError, StatusError and OSError."""
        for claim, volume in bindings.found:
            await self._give(volume, claim)
        told = [
            claim
            if claim.metadata.annotations.get(SELECTED_NODE) == node
            else await self._write(claim, lambda one: _annotated(one, SELECTED_NODE, node))
            for claim in bindings.made
        ]
        try:
            async with asyncio.timeout(WITHIN):
                await self._bound(pod, [claim for claim, _ in bindings.found], told, node)
        except TimeoutError:
            raise VolumesError("binding volumes: context deadline exceeded") from None

    async def _give(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        if is_bound_to(volume, claim):
            # Bound beforehand: the volume controller does what is left.
            return
        ref = ObjectReference(
            kind=claim.KIND,
            namespace=claim.metadata.namespace,
            name=claim.metadata.name,
            uid=claim.metadata.uid,
            api_version=claim.API_VERSION,
            resource_version=claim.metadata.resource_version,
        )
        await self._write(
            volume,
            lambda one: replace(
                _annotated(one, BOUND_BY_CONTROLLER, "yes"), spec=replace(one.spec, claim_ref=ref)
            ),
        )

    async def _write(self, decided: Decided, change: Callable[[Decided], Decided]) -> Decided:
        """Returns what was written."""
        newest = decided
        while True:
            try:
                return await self._client.update(change(newest))
            except StatusError as error:
                if error.code != 409:
                    raise
                meta = newest.metadata
                newest = await self._client.get(type(decided), meta.name, meta.namespace)
                if not is_as_decided(decided, newest):
                    raise

    async def _bound(
        self,
        pod: Pod,
        given: list[PersistentVolumeClaim],
        told: list[PersistentVolumeClaim],
        node: str,
    ) -> None:
        """`told`: the claims that a volume is made for, as they were written."""
        written = {key_of(claim): int(claim.metadata.resource_version) for claim in told}
        changed = asyncio.Event()
        keys = [key_of(claim) for claim in (*given, *told)]
        watched = [*keys, _pod_key(pod)]
        for key in watched:
            self._waiting[key].add(changed)
        try:
            while not self._are_bound(keys, written, node):
                if self._pods.get(pod.metadata.namespace, pod.metadata.name) is None:
                    raise VolumesError(
                        f'binding volumes: pod does not exist any more: pod "{pod.metadata.name}" not found'
                    )
                changed.clear()
                await changed.wait()
        finally:
            for key in watched:
                self._waiting[key].discard(changed)
                if not self._waiting[key]:
                    del self._waiting[key]

    def _are_bound(self, keys: list[Key], written: dict[Key, int], node: str) -> bool:
        done = True
        for key in keys:
            claim = self._claims.get(*key)
            if claim is None:
                raise VolumesError(
                    f'binding volumes: failed to get PVC "{key[0]}/{key[1]}": '
                    f'persistentvolumeclaim "{key[1]}" not found'
                )
            if is_bound(claim):
                continue
            done = False
            # What the informer shows may be older than what was written.
            if key in written and int(claim.metadata.resource_version) >= written[key]:
                chosen = claim.metadata.annotations.get(SELECTED_NODE)
                if chosen is None:
                    raise VolumesError(f'binding volumes: provisioning failed for PVC "{key[1]}"')
                if chosen != node:
                    raise VolumesError(f'binding volumes: selected node changed for PVC "{key[1]}"')
        return done

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        one = new or old
        assert one is not None
        self._wake(key_of(one))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None and old is not None:
            self._wake(_pod_key(old))

    def _wake(self, key: Key) -> None:
        for event in self._waiting.get(key, ()):
            event.set()


def _annotated(one: Decided, key: str, value: str) -> Decided:
    annotations = {**one.metadata.annotations, key: value}
    return replace(one, metadata=replace(one.metadata, annotations=annotations))


def _pod_key(pod: Pod) -> Key:
    # No claim is named so.
    return pod.metadata.namespace, f"pod/{pod.metadata.name}"
