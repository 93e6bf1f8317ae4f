"""The watchers of what is under one prefix, and who of them may care for a change.

Each of thousands of kubelets watches the pods of its node. So those that want one value of a field are found
by the values that an object has and had: a change costs as much as there are watchers that it may be told
(decision 125).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from podling.watch.entry import Change, SharedFrames
from podling.watch.subscription import Subscription

Subscriptions = dict[Subscription, None]
"""In the order in which they came."""


class Only(NamedTuple):
    """All that a watcher selects has `value` in `field`, which `read` reads of an object."""

    field: str
    read: Callable[[Any], str]
    value: str


class _Field(NamedTuple):
    read: Callable[[Any], str]
    by_value: dict[str, Subscriptions]


class Audience:
    def __init__(self) -> None:
        self._of_all: Subscriptions = {}
        self._fields: dict[str, _Field] = {}

    def __bool__(self) -> bool:
        return bool(self._of_all or self._fields)

    def __iter__(self) -> Iterator[Subscription]:
        yield from self._of_all
        for field in self._fields.values():
            for subscriptions in field.by_value.values():
                yield from subscriptions

    def add(self, subscription: Subscription, only: Only | None) -> None:
        if only is None:
            self._of_all[subscription] = None
            return
        field = self._fields.setdefault(only.field, _Field(only.read, {}))
        field.by_value.setdefault(only.value, {})[subscription] = None

    def drop(self, subscription: Subscription, only: Only | None) -> None:
        if only is None:
            del self._of_all[subscription]
            return
        by_value = self._fields[only.field].by_value
        del by_value[only.value][subscription]
        if not by_value[only.value]:
            del by_value[only.value]
        if not by_value:
            del self._fields[only.field]

    def offer(self, changes: Sequence[Change], shared: SharedFrames) -> None:
        """Each in order to everybody who may want it. One that is full ends, and is dropped meanwhile."""
        for subscription in tuple(self._of_all):
            subscription.offer(changes, shared)
        for read, by_value in tuple(self._fields.values()):
            for change in changes:
                values = {read(entry.object) for entry in (change.old, change.new) if entry is not None}
                for value in values:
                    for subscription in tuple(by_value.get(value, ())):
                        subscription.offer((change,), shared)
