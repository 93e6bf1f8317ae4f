"""ReplicaSets and ReplicationControllers: as many pods of a template as they say.

One implementation, for which a `Sort` says what differs. What it has created and deleted is waited for before
it counts again (`Created`, `Deleted`), so that an informer that lags makes no pod too many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import LAG, Created, Deleted, Key, gone_is_done, own_key
from podling.controllers.endpoints import is_ready
from podling.controllers.workloads.claims import Claims, Owned, controller_of, of_owned
from podling.controllers.workloads.pods import (
    PodWriter,
    available_in,
    from_template,
    in_ending_namespace,
    is_active,
    is_terminating,
    slowly,
    together,
)
from podling.controllers.workloads.scale_down import to_delete
from podling.model.errors import StatusError
from podling.model.selectors import Selector, from_label_selector
from podling.model.time import Clock, rfc3339
from podling.model.types.apps import ReplicaSet, ReplicaSetCondition
from podling.model.types.meta import LabelSelector
from podling.model.types.pod import Pod
from podling.model.types.replication_controller import ReplicationController, ReplicationControllerCondition

MOST_AT_ONCE = 500
"""Pods created or deleted for one reconciliation."""
FAILURE = "ReplicaFailure"

R = TypeVar("R", ReplicaSet, ReplicationController)


class Sort(NamedTuple, Generic[R]):
    """`name` is the controller's in metrics, `component` the one that tells events."""

    name: str
    component: str
    selector: Callable[[R], Selector]
    condition: Callable[..., Any]
    counts_terminating: bool


def _of_set(owner: ReplicaSet) -> Selector:
    return from_label_selector(owner.spec.selector)


def _of_controller(owner: ReplicationController) -> Selector:
    return from_label_selector(LabelSelector(match_labels=owner.spec.selector))


SETS = Sort("replicaset", "replicaset-controller", _of_set, ReplicaSetCondition, counts_terminating=True)
CONTROLLERS = Sort(
    "replicationmanager",
    "replication-controller",
    _of_controller,
    ReplicationControllerCondition,
    counts_terminating=False,
)


class Replicas(Generic[R]):
    def __init__(
        self,
        sort: Sort[R],
        client: Client,
        owners: Informer[R],
        pods: Informer[Pod],
        owned: Owned[Pod],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self.name = sort.name
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._clock = client, clock
        self._sort: Sort[R] = sort
        self._owners: Informer[R] = owners
        self._owned = owned
        self._siblings: Owned[R] = Owned(owners)
        self._claims = Claims[Pod](client)
        self._pods = PodWriter(client, events.by(sort.component))
        self._created, self._deleted = Created(pods), Deleted(pods)
        owners.subscribe(own_key(self.queue))
        pods.subscribe(of_owned(self.queue, owners, sort.selector))

    async def reconcile(self, key: Key) -> None:
        lags = self._created.is_behind(key) or self._deleted.is_behind(key)
        owner = self._owners.get(*key)
        if owner is None:
            return
        selector = self._sort.selector(owner)
        found = self._owned.candidates(owner)
        pods = await self._claims.settle(owner, selector, [pod for pod in found if is_active(pod)])
        terminating = [
            pod
            for pod in self._owned.of(owner)
            if is_terminating(pod) and selector.matches(pod.metadata.labels)
        ]
        failed: StatusError | None = None
        if lags:
            self.queue.add_after(key, LAG)
        elif not owner.metadata.deletion_timestamp:
            try:
                await self._scale(key, owner, pods)
            except StatusError as error:
                failed = error
        await self._tell(key, owner, pods, terminating, failed)
        if failed:
            raise failed

    async def _scale(self, key: Key, owner: R, pods: Sequence[Pod]) -> None:
        """Create or delete pods; not both. Raises StatusError."""
        missing, template = (owner.spec.replicas or 0) - len(pods), owner.spec.template
        if missing > 0 and template is not None:
            pod = from_template(owner, template)

            async def create() -> None:
                try:
                    self._created.add(key, await self._pods.create(owner, pod))
                except StatusError as error:
                    if not in_ending_namespace(error):
                        raise

            await slowly(min(missing, MOST_AT_ONCE), create)
        elif missing < 0:

            async def delete(pod: Pod) -> None:
                await self._pods.delete(owner, pod)
                self._deleted.add(key, pod)

            count = min(-missing, MOST_AT_ONCE)
            going = to_delete(pods, self._related(owner), count, self._clock.now())
            await together([delete(pod) for pod in going])

    def _related(self, owner: R) -> list[Pod]:
        """The pods of those that have its controller, such as the ReplicaSets of one Deployment."""
        controller = controller_of(owner.metadata)
        siblings = self._siblings.by_uid(controller.uid) if controller else []
        return [pod for sibling in siblings for pod in self._owned.of(sibling)]

    async def _tell(
        self,
        key: Key,
        owner: R,
        pods: Sequence[Pod],
        terminating: Sequence[Pod],
        failed: StatusError | None,
    ) -> None:
        now = self._clock.now()
        delays = [available_in(pod, owner.spec.min_ready_seconds, now) for pod in pods]
        if later := [delay for delay in delays if delay]:
            self.queue.add_after(key, min(later))
        labels = owner.spec.template.metadata.labels if owner.spec.template else {}
        counted = {"terminating_replicas": len(terminating)} if self._sort.counts_terminating else {}
        status = replace(
            owner.status,
            replicas=len(pods),
            fully_labeled_replicas=sum(labels.items() <= pod.metadata.labels.items() for pod in pods),
            ready_replicas=sum(map(is_ready, pods)),
            available_replicas=sum(delay == 0 for delay in delays),
            observed_generation=owner.metadata.generation,
            conditions=self._conditions(owner, len(pods), failed, now),
            **counted,
        )
        if status != owner.status:
            with gone_is_done():
                await self._client.update(replace(owner, status=status), subresource="status")

    def _conditions(self, owner: R, pods: int, failed: StatusError | None, now: datetime) -> list[Any]:
        """One that the pods could not be made or ended, as long as that is so; the first failure stays."""
        every: list[Any] = list(owner.status.conditions)
        others: list[Any] = [one for one in every if one.type != FAILURE]
        standing: list[Any] = [one for one in every if one.type == FAILURE]
        if failed is None or standing:
            return others + standing if failed else others
        reason = "FailedCreate" if pods < (owner.spec.replicas or 0) else "FailedDelete"
        condition = self._sort.condition(
            type=FAILURE,
            status="True",
            last_transition_time=rfc3339(now),
            reason=reason,
            message=failed.message,
        )
        return [*others, condition]
