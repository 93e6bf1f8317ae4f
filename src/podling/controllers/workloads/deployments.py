"""Deployments: a ReplicaSet for each template they had, of which the pods move to the newest.

What to do next is planned in `rollout.py`, and told in `rollout_status.py`; this reads and writes. Every
write names the version it was planned for: a plan of an informer that lags is refused and made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done, own_key
from podling.controllers.workloads.claims import Claims, Owned, controller_of, of_owned
from podling.controllers.workloads.pods import in_ending_namespace
from podling.controllers.workloads.rollout import (
    HASH_LABEL,
    REVISION,
    Scale,
    active,
    annotated,
    desired,
    name_of_set,
    new_size,
    resized,
    revision,
    rolling,
    scaled,
    size_of,
    split,
    template_hash,
    to_forget,
    was_scaled,
    without_hash,
)
from podling.controllers.workloads.rollout_status import (
    PROGRESSING,
    condition,
    counted,
    deadline,
    find,
    is_complete,
    late_in,
    paused,
    put,
    rolled,
)
from podling.model.errors import StatusError
from podling.model.rules.status import is_terminal
from podling.model.selectors import Selector, from_label_selector
from podling.model.time import Clock
from podling.model.types.apps import Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec
from podling.model.types.meta import LabelSelector, ObjectMeta, controller_reference
from podling.model.types.pod import Pod

COMPONENT = "deployment-controller"


class Deployments:
    name = "deployment"

    def __init__(
        self,
        client: Client,
        deployments: Informer[Deployment],
        sets: Informer[ReplicaSet],
        pods: Informer[Pod],
        owned_pods: Owned[Pod],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._events, self._clock = client, events.by(COMPONENT), clock
        self._deployments, self._sets, self._owned_pods = deployments, sets, owned_pods
        self._owned = Owned(sets)
        self._claims = Claims[ReplicaSet](client)
        deployments.subscribe(own_key(self.queue))
        sets.subscribe(of_owned(self.queue, deployments, _selector))
        pods.subscribe(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        deployment = self._deployments.get(*key)
        if deployment is None:
            return
        if deployment.spec.selector in (None, LabelSelector()):
            self._events.warning(
                deployment,
                "SelectingAll",
                "This deployment is selecting all pods. A non-empty selector is required.",
            )
            observed = replace(deployment.status, observed_generation=deployment.metadata.generation)
            await self._put_status(deployment, observed)
            return
        found = self._owned.candidates(deployment)
        sets = await self._claims.settle(deployment, _selector(deployment), found)
        with gone_is_done():
            await self._sync(key, deployment, sets)

    async def _sync(self, key: Key, deployment: Deployment, sets: Sequence[ReplicaSet]) -> None:
        now = self._clock.now()
        new: ReplicaSet | None
        old: Sequence[ReplicaSet]
        new, old = split(deployment, sets)
        if not deployment.metadata.deletion_timestamp:
            conditions = paused(deployment, now)
            deployment = await self._put_status(deployment, replace(deployment.status, conditions=conditions))
            if new is not None:
                deployment, new = await self._follow(deployment, new, old)
            if not deployment.spec.paused and not was_scaled(deployment, sets):
                await self._roll(key, deployment, new, old)
                return
            steps = scaled(deployment, new, old)
            new, old = await self._scale(deployment, steps, new, old)
            if deployment.spec.paused:
                await self._forget(deployment, old)
        elif new is not None:
            deployment, new = await self._follow(deployment, new, old)
        await self._put_status(deployment, counted(deployment, new, old, now))

    async def _roll(
        self, key: Key, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]
    ) -> None:
        if deployment.spec.strategy.type == "Recreate":
            deployment, new, old, is_done = await self._recreate(deployment, new, old)
        else:
            if new is None:
                deployment, new = await self._make(deployment, old)
            steps = rolling(deployment, new, old)
            new, old = await self._scale(deployment, steps, new, old)
            is_done = not steps
        if is_done and is_complete(deployment, deployment.status):
            await self._forget(deployment, old)
        now = self._clock.now()
        status = rolled(deployment, new, old, now)
        await self._put_status(deployment, status)
        if (later := late_in(deployment, status, now)) is not None:
            self.queue.add_after(key, later)

    async def _recreate(
        self, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]
    ) -> tuple[Deployment, ReplicaSet | None, Sequence[ReplicaSet], bool]:
        """What stands then, and whether nothing was done: the new set gets pods when no other's runs."""
        steps = [Scale(one.metadata.name, 0) for one in active(old)]
        if steps:
            new, old = await self._scale(deployment, steps, new, old)
            return deployment, new, old, False
        left = [pod for one in old for pod in self._owned_pods.of(one) if not is_terminal(pod)]
        if left or any(one.status.replicas for one in old):
            return deployment, new, old, False
        if new is None:
            deployment, new = await self._make(deployment, old)
        wanted = (
            [Scale(new.metadata.name, desired(deployment))] if size_of(new) != desired(deployment) else []
        )
        new, old = await self._scale(deployment, wanted, new, old)
        return deployment, new, old, not wanted

    async def _follow(
        self, deployment: Deployment, new: ReplicaSet, old: Iterable[ReplicaSet]
    ) -> tuple[Deployment, ReplicaSet]:
        """The new set has the Deployment's annotations and the highest revision; so has the Deployment."""
        wanted = annotated(deployment, new, max(map(revision, old), default=0) + 1)
        wanted = replace(
            wanted, spec=replace(wanted.spec, min_ready_seconds=deployment.spec.min_ready_seconds)
        )
        if wanted != new:
            new = await self._client.update(wanted)
        status, number = deployment.status, revision(new)
        if deadline(deployment) is not None and find(status.conditions, PROGRESSING) is None:
            said = f'Found new replica set "{new.metadata.name}"'
            status = self._progressing(deployment, "True", "FoundNewReplicaSet", said)
        return await self._put_status(deployment, status, str(number)), new

    async def _make(self, deployment: Deployment, old: Sequence[ReplicaSet]) -> tuple[Deployment, ReplicaSet]:
        number = max(map(revision, old), default=0) + 1
        wanted = annotated(deployment, self._new_set(deployment, old), number)
        name, size = wanted.metadata.name, size_of(wanted)
        try:
            made = await self._client.create(wanted)
        except StatusError as error:
            if error.reason == "AlreadyExists":
                return deployment, await self._same(deployment, name, error)
            if not in_ending_namespace(error):
                said = f'Failed to create new replica set "{name}": {error.message}'
                if deadline(deployment) is not None:
                    status = self._progressing(deployment, "False", "ReplicaSetCreateError", said)
                    await self._put_status(deployment, status)
                self._events.warning(deployment, "ReplicaSetCreateError", said)
            raise
        if size:
            self._tell_scaled(deployment, name, 0, size)
        status = deployment.status
        if deadline(deployment) is not None:
            said = f'Created new replica set "{name}"'
            status = self._progressing(deployment, "True", "NewReplicaSetCreated", said)
        return await self._put_status(deployment, status, str(number)), made

    async def _same(self, deployment: Deployment, name: str, exists: StatusError) -> ReplicaSet:
        """The set of that name, if it is one that the informer did not show yet. Of another template, the
        next name is tried; raises StatusError."""
        standing = await self._client.get(ReplicaSet, name, deployment.metadata.namespace)
        controller = controller_of(standing.metadata)
        is_ours = controller is not None and controller.uid == deployment.metadata.uid
        if is_ours and without_hash(standing.spec.template) == without_hash(deployment.spec.template):
            return standing
        count = (deployment.status.collision_count or 0) + 1
        await self._put_status(deployment, replace(deployment.status, collision_count=count))
        raise exists

    def _new_set(self, deployment: Deployment, old: Sequence[ReplicaSet]) -> ReplicaSet:
        spec, meta = deployment.spec, deployment.metadata
        hashed = template_hash(spec.template, deployment.status.collision_count)
        labels = {**spec.template.metadata.labels, HASH_LABEL: hashed}
        chosen = spec.selector or LabelSelector()
        made = ReplicaSet(
            metadata=ObjectMeta(
                name=name_of_set(deployment, hashed),
                namespace=meta.namespace,
                labels=labels,
                owner_references=[controller_reference(deployment)],
            ),
            spec=ReplicaSetSpec(
                min_ready_seconds=spec.min_ready_seconds,
                selector=replace(chosen, match_labels={**chosen.match_labels, HASH_LABEL: hashed}),
                template=replace(spec.template, metadata=replace(spec.template.metadata, labels=labels)),
            ),
        )
        return resized(deployment, made, new_size(deployment, old, 0))

    async def _scale(
        self,
        deployment: Deployment,
        steps: Iterable[Scale],
        new: ReplicaSet | None,
        old: Sequence[ReplicaSet],
    ) -> tuple[ReplicaSet | None, Sequence[ReplicaSet]]:
        """The new set and the old ones after the steps. Raises StatusError at the first that fails."""
        standing = {one.metadata.name: one for one in (*old, *((new,) if new else ()))}
        for name, size in steps:
            before = standing[name]
            wanted = resized(deployment, before, size)
            if wanted == before:
                continue
            standing[name] = await self._client.update(wanted)
            if size != size_of(before):
                self._tell_scaled(deployment, name, size_of(before), size)
        return (standing[new.metadata.name] if new else None), [standing[one.metadata.name] for one in old]

    async def _forget(self, deployment: Deployment, old: Sequence[ReplicaSet]) -> None:
        for one in to_forget(deployment, old):
            with gone_is_done():
                await self._client.delete(ReplicaSet, one.metadata.name, one.metadata.namespace)

    async def _put_status(
        self, deployment: Deployment, status: DeploymentStatus, number: str = ""
    ) -> Deployment:
        """Write what differs of the status and of the number of the revision, if one is given."""
        meta = deployment.metadata
        annotations = {**meta.annotations, REVISION: number} if number else meta.annotations
        if (status, annotations) == (deployment.status, meta.annotations):
            return deployment
        wanted = replace(deployment, status=status, metadata=replace(meta, annotations=annotations))
        return await self._client.update(wanted, subresource="status")

    def _progressing(
        self, deployment: Deployment, status: str, reason: str, message: str
    ) -> DeploymentStatus:
        said = condition(self._clock.now(), PROGRESSING, status, reason, message)
        return replace(deployment.status, conditions=put(deployment.status.conditions, said))

    def _tell_scaled(self, deployment: Deployment, name: str, before: int, size: int) -> None:
        how = "up" if size > before else "down"
        said = f"Scaled {how} replica set {name} from {before} to {size}"
        self._events.normal(deployment, "ScalingReplicaSet", said)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """A Deployment that recreates waits for the last pod of its old ReplicaSets."""
        if old is None or (new is not None and not is_terminal(new)):
            return
        ref = controller_of(old.metadata)
        one = self._sets.get(old.metadata.namespace, ref.name) if ref else None
        above = controller_of(one.metadata) if one is not None else None
        if above is None:
            return
        deployment = self._deployments.get(old.metadata.namespace, above.name)
        if deployment is not None and deployment.spec.strategy.type == "Recreate":
            self.queue.add((old.metadata.namespace, above.name))


def _selector(deployment: Deployment) -> Selector:
    return from_label_selector(deployment.spec.selector)
