"""R-SYS-8: PodTolerationRestriction gives pods what their namespace tolerates, and no more than it may."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from podling.apiserver.admission.plugin import Attributes, Operation
from podling.apiserver.admission.plugin_options import TolerationOptions
from podling.apiserver.admission.tolerations import (
    DEFAULT,
    REFUSED,
    WHITELIST,
    Cover,
    PodTolerationCheck,
    PodTolerationRestriction,
    merged,
)
from podling.apiserver.request.request import User
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.scheme import resource_of
from podling.model.types.core import Namespace
from podling.model.types.pod import Pod, Toleration
from unit.apiserver.admission.sent import Itself

A, B = ({"key": key, "operator": "Exists"} for key in "ab")
USUAL = TolerationOptions([from_data(A, Toleration)], [from_data(one, Toleration) for one in (A, B)])


class Objects:
    all: Any
    changes: Any
    change: Any
    create: Any

    def __init__(self, annotations: dict[str, str]) -> None:
        self.namespace = from_data({"metadata": {"name": "ns", "annotations": annotations}}, Namespace)

    def find(self, type: Any, namespace: str, name: str) -> Any:
        return self.namespace


def pod(*own: dict[str, Any], **requests: str) -> Pod:
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    return from_data({"spec": {"containers": [container], "tolerations": list(own)}}, Pod)


async def given(
    new: Pod, said: dict[str, str], options: TolerationOptions = USUAL, operation: Operation = "CREATE"
) -> str:
    """The keys of what it tolerates then, or why it is refused."""
    of = resource_of(Pod)
    plugin = PodTolerationRestriction(Objects(said), options)
    try:
        for one in (plugin, PodTolerationCheck(plugin)):
            await one.admit(
                Attributes(operation, of, "", "ns", "p", User("ann"), of.plural, Itself()), new, None
            )
    except StatusError as refused:
        return refused.message
    return " ".join(one.key for one in new.spec.tolerations)


async def test_the_configuration_holds_where_a_namespace_says_nothing() -> None:
    assert await given(pod(), {}) == "a"
    assert await given(pod(B), {}) == "b a"
    assert await given(pod({**A, "key": "c"}), {}) == f"{REFUSED} cluster whitelist"
    assert await given(pod(B), {}, operation="UPDATE") == "b"
    assert await given(pod({**A, "key": "c"}), {}, TolerationOptions()) == "c"


async def test_a_namespace_says_it_otherwise() -> None:
    assert await given(pod(), {DEFAULT: '[{"key": "b", "operator": "Exists"}]'}) == "b"
    assert await given(pod(), {DEFAULT: ""}) == ""
    assert await given(pod({**A, "key": "c"}), {DEFAULT: "[]", WHITELIST: ""}) == "c"
    assert (
        await given(pod(B), {WHITELIST: '[{"key": "a", "operator": "Exists"}]'})
        == f"{REFUSED} namespace whitelist"
    )


async def test_who_asks_for_something_tolerates_memory_pressure() -> None:
    assert await given(pod(cpu="1"), {}, TolerationOptions()) == "node.kubernetes.io/memory-pressure"


@pytest.mark.parametrize(
    ("wider", "one", "is_covered"),
    [
        ({"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"}, True),
        ({"key": "a", "operator": "Exists"}, {"key": "b"}, False),
        ({"key": "a", "operator": "Exists"}, {"key": "a", "effect": "NoSchedule"}, True),
        ({"key": "a", "operator": "Exists", "effect": "NoExecute"}, {"key": "a"}, False),
        ({"key": "a", "value": "b"}, {"key": "a", "operator": "Equal", "value": "b"}, True),
        ({"key": "a", "value": "b", "effect": ""}, {"key": "a", "value": "b", "effect": "NoSchedule"}, False),
        (
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 6},
            False,
        ),
        (
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
            {"key": "a", "operator": "Equal", "effect": "NoExecute", "tolerationSeconds": 5},
            True,
        ),
    ],
)
def test_what_one_toleration_makes_needless(
    wider: dict[str, Any], one: dict[str, Any], *, is_covered: bool
) -> None:
    wide, narrow = from_data(wider, Toleration), from_data(one, Toleration)
    assert Cover([wide]).has(narrow) is covers(wide, narrow) is is_covered


def covers(wider: Toleration, one: Toleration) -> bool:
    """The rule, pair by pair."""
    if wider == one:
        return True
    if one.key != wider.key and (wider.key or wider.operator != "Exists"):
        return False
    if wider.effect not in ("", one.effect):
        return False
    if wider.effect == "NoExecute" and (most := wider.toleration_seconds) is not None:
        seconds = one.toleration_seconds
        if seconds is None or seconds > most:
            return False
    if wider.operator == "Exists":
        return True
    return wider.operator in ("", "Equal") and one.operator == "Equal" and one.value == wider.value


def merged_one_by_one(tolerations: Sequence[Toleration]) -> list[Toleration]:
    kept: list[Toleration] = []
    for index, one in enumerate(tolerations):
        later = (other for other in tolerations[index + 1 :] if other != one)
        if not any(covers(other, one) for other in (*kept, *later)):
            kept.append(one)
    return kept


ANY_TOLERATION = strategies.builds(
    Toleration,
    key=strategies.sampled_from(["", "a", "b"]),
    operator=strategies.sampled_from(["", "Equal", "Exists", "Lt"]),
    value=strategies.sampled_from(["", "1"]),
    effect=strategies.sampled_from(["", "NoSchedule", "NoExecute"]),
    toleration_seconds=strategies.sampled_from([None, 0, 5]),
)


@hypothesis.given(strategies.lists(ANY_TOLERATION, max_size=8), ANY_TOLERATION)
def test_many_are_merged_as_one_by_one(several: list[Toleration], other: Toleration) -> None:
    assert merged(several) == merged_one_by_one(several)
    assert Cover(several).has(other) is any(covers(one, other) for one in several)


def test_as_many_as_a_body_holds_take_linear_time() -> None:
    """A user may send 3 MiB of tolerations: pair by pair that is hours."""
    several = [Toleration(key=f"k{i}", operator="Equal", value="v") for i in range(20_000)]
    assert merged(several) == several
    assert all(map(Cover(several).has, several))
