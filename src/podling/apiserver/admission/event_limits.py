"""EventRateLimit: so many events a second are taken, of all clients together, or of each namespace, user, or
source and object. What is beyond is refused and not kept for later."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from podling.apiserver.admission.plugin import Attributes, Handles
from podling.apiserver.admission.plugin_options import EventLimit
from podling.model.errors import StatusError
from podling.model.types.core import Event

LONGEST_KEY = 1024
"""Characters of a key that are told apart: names are shorter."""


class EventRateLimit:
    """`now` is a clock in seconds that never goes back."""

    handles: ClassVar[Handles] = {"events": ("CREATE", "UPDATE")}

    def __init__(self, limits: Sequence[EventLimit], now: Callable[[], float]) -> None:
        self._limits = [(limit, Buckets(limit, now)) for limit in limits]

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 429, of the last limit that is reached. All are charged."""
        refused = ""
        for limit, buckets in self._limits:
            key = KEYS[limit.type](attributes, new)
            if not buckets.take(key[:LONGEST_KEY]):
                refused = f"limit reached on type {limit.type} for key {key}"
        if refused:
            raise StatusError(429, "TooManyRequests", f"Too many requests: {refused}")


class Buckets:
    """A token bucket for each key; the least used is forgotten."""

    def __init__(self, limit: EventLimit, now: Callable[[], float]) -> None:
        self._limit, self._now = limit, now
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What is left, and since when."""

    def take(self, key: str) -> bool:
        now = self._now()
        left, since = self._known.pop(key, (float(self._limit.burst), now))
        left = min(self._limit.burst, left + (now - since) * self._limit.qps)
        if is_taken := left >= 1:
            left -= 1
        self._known[key] = left, now
        if len(self._known) > self._limit.cache_size:
            self._known.popitem(last=False)
        return is_taken


def _source_and_object(attributes: Attributes, event: Event) -> str:
    source, about = event.source, event.involved_object
    named = (about.kind, about.namespace, about.name, about.uid, about.api_version)
    return "".join((source.component, source.host, *named))


KEYS: Mapping[str, Callable[[Attributes, Any], str]] = {
    "Server": lambda attributes, event: "",
    "Namespace": lambda attributes, event: attributes.namespace,
    "User": lambda attributes, event: attributes.user.name,
    "SourceAndObject": _source_and_object,
}
