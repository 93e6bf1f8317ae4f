"""The interface of a controller, its loop, and its metrics under client-go's names for work queues.

`Created` and `Deleted` keep a controller from creating an object twice, or deleting one too many, while its
informer lags (Kubernetes' expectations).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue, work
from podling.model.errors import StatusError
from podling.model.types.meta import KubeObject, ObjectMeta

K = TypeVar("K")
T = TypeVar("T", bound=KubeObject)

Handler = Callable[[T | None, T | None], None]
"""Of an informer: called with (old, new)."""

Key = tuple[str, str]
"""(namespace, name) of the object that a controller reconciles."""

Accounts = Callable[[str], Client]
"""The client of a controller, by the name of its account in `kube-system`."""

LABELS = ["name"]
"""Of the metrics."""
LAG = 1.0
"""Seconds after which a key that waits for its informer is reconciled again, if no event brings it back."""


class Controller(Protocol[K]):
    """Its constructor subscribes to informers and only adds keys to `queue`; `reconcile` reads the current
    state and acts."""

    name: str
    queue: WorkQueue[K]

    async def reconcile(self, key: K) -> None: ...


async def run(controller: Controller[K], workers: int = 1) -> None:
    """Reconcile for ever; run it after the controller's informers have synced."""
    async with asyncio.TaskGroup() as tasks:
        for _ in range(workers):
            tasks.create_task(work(controller.queue, controller.reconcile, controller.name))


@contextmanager
def gone_is_done() -> Iterator[None]:
    """Ignores StatusError 404: the object was deleted meanwhile, and nothing is left to do."""
    try:
        yield
    except StatusError as error:
        if error.code != 404:
            raise


@contextmanager
def there_is_done() -> Iterator[None]:
    """Ignores StatusError AlreadyExists: somebody else has made the object."""
    try:
        yield
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise


def own_key(queue: WorkQueue[Key], name: str = "") -> Handler[KubeObject]:
    """A handler that adds the key of the object that changed; with `name`, only of an object of that name.
    It is also for objects that are named like those that are made from them, as Endpoints are."""

    def changed(old: KubeObject | None, new: KubeObject | None) -> None:
        one = new or old
        if one is not None and name in ("", one.metadata.name):
            queue.add((one.metadata.namespace, one.metadata.name))

    return changed


class Created(Generic[T]):
    """Objects that a controller has created for its keys and that its informer may not show yet.

    A key waits until the informer shows them. Reconciled earlier, it would get the same object again under
    another generated name. Kubernetes calls this expectations.
    """

    def __init__(self, informer: Informer[T]) -> None:
        self._informer = informer
        self._newest: dict[Key, str] = {}

    def add(self, key: Key, obj: T) -> None:
        version = obj.metadata.resource_version
        # Of objects that are created at once, the answer for the newest need not come last.
        self._newest[key] = max(self._newest.get(key, version), version, key=int)

    def is_behind(self, key: Key) -> bool:
        version = self._newest.get(key)
        if version is None:
            return False
        if not self._informer.has_seen(version):
            return True
        del self._newest[key]
        return False


class Deleted(Generic[T]):
    """Objects that a controller has deleted for its keys, and of which its informer may not show it yet.

    As with `Created`, a key waits for it: reconciled earlier, it would count them and delete others, too.
    Something else that was done to objects is waited for if `shows` says whether it was.
    """

    def __init__(
        self,
        informer: Informer[T],
        shows: Callable[[ObjectMeta], bool] = lambda meta: bool(meta.deletion_timestamp),
    ) -> None:
        self._informer, self._shows = informer, shows
        self._deleted: dict[Key, list[T]] = {}

    def add(self, key: Key, obj: T) -> None:
        self._deleted.setdefault(key, []).append(obj)

    def is_behind(self, key: Key) -> bool:
        if any(self._stands(obj.metadata) for obj in self._deleted.get(key, ())):
            return True
        self._deleted.pop(key, None)
        return False

    def _stands(self, meta: ObjectMeta) -> bool:
        shown = self._informer.get(meta.namespace, meta.name)
        return shown is not None and shown.metadata.uid == meta.uid and not self._shows(shown.metadata)


def queue_metrics(controllers: Iterable[Controller[Any]]) -> Iterable[Metric]:
    depth = GaugeMetricFamily("workqueue_depth", "Keys that wait to be worked on.", labels=LABELS)
    adds = CounterMetricFamily("workqueue_adds_total", "Keys that were added.", labels=LABELS)
    retries = CounterMetricFamily("workqueue_retries_total", "Keys that failed.", labels=LABELS)
    for controller in controllers:
        queue, name = controller.queue, [controller.name]
        depth.add_metric(name, len(queue))
        adds.add_metric(name, queue.adds)
        retries.add_metric(name, queue.retries)
    return depth, adds, retries
