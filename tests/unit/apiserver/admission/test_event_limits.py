"""R-SYS-8: EventRateLimit takes so many events a second, and forgets who has not been heard of for long."""

from __future__ import annotations

from typing import Any

import pytest

from podling.apiserver.admission.event_limits import Buckets, EventRateLimit
from podling.apiserver.admission.plugin import Attributes
from podling.apiserver.admission.plugin_options import EventLimit
from podling.apiserver.request.request import User
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.scheme import resource_of
from podling.model.types.core import Event
from unit.apiserver.admission.sent import Itself


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def event(name: str, component: str = "") -> Event:
    about = {"kind": "Pod", "namespace": "n", "name": name}
    return from_data({"involvedObject": about, "source": {"component": component}}, Event)


async def taken(plugin: EventRateLimit, new: Event, user: str = "ann", namespace: str = "ns") -> str:
    """Why it is refused; empty if it is not."""
    of = resource_of(Event)
    try:
        await plugin.admit(
            Attributes("CREATE", of, "", namespace, "e", User(user), of.plural, Itself()), new, None
        )
    except StatusError as refused:
        assert (refused.code, refused.reason) == (429, "TooManyRequests")
        return refused.message
    return ""


@pytest.mark.parametrize(
    ("type_", "key", "other"),
    [
        ("Server", "", None),
        ("Namespace", "ns", {"namespace": "other"}),
        ("User", "ann", {"user": "bob"}),
        ("SourceAndObject", "Podnp", {"new": event("q")}),
        ("SourceAndObject", "Podnp", {"new": event("p", "scheduler")}),
    ],
)
async def test_each_key_has_its_burst(type_: str, key: str, other: dict[str, Any] | None) -> None:
    plugin = EventRateLimit([EventLimit(type_, 1, 2, 10)], Clock())
    assert [await taken(plugin, event("p")) for _ in range(2)] == ["", ""]
    assert f"limit reached on type {type_} for key {key}" in await taken(plugin, event("p"))
    if other is not None:
        assert await taken(plugin, **{"new": event("p"), **other}) == ""


def test_a_bucket_fills_again_as_time_goes_by() -> None:
    clock = Clock()
    buckets = Buckets(EventLimit("Server", 2, 3, 10), clock)
    assert [buckets.take("") for _ in range(4)] == [True, True, True, False]
    clock.now += 0.5
    assert [buckets.take("") for _ in range(2)] == [True, False]
    clock.now += 1000
    assert [buckets.take("") for _ in range(4)] == [True, True, True, False]


def test_the_least_used_is_forgotten() -> None:
    buckets = Buckets(EventLimit("User", 1, 1, 2), Clock())
    assert [buckets.take(key) for key in ("a", "b", "a", "c", "a", "b")] == [
        True,
        True,
        False,
        True,
        False,
        True,
    ]


async def test_all_limits_are_charged_and_the_last_one_is_told_of() -> None:
    plugin = EventRateLimit([EventLimit("Server", 1, 1, 1), EventLimit("User", 1, 2, 9)], Clock())
    assert await taken(plugin, event("p")) == ""
    assert "type Server" in await taken(plugin, event("p"))
    assert "type User" in await taken(plugin, event("p"))
