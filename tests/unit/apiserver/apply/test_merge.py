"""R-SYS-1: what an object becomes when a configuration is applied, and again without part of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.apply.apply import merge, prune
from podling.apiserver.apply.configuration import configured_fields
from podling.apiserver.apply.schema import schema_of
from podling.model.types.pod import Pod

POD = schema_of(Pod)


def containers(*names: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": name} for name in names]}}


def names(data: dict[str, Any]) -> str:
    return "".join(item["name"] for item in data["spec"]["containers"])


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        ("ab", "ab", "ab"),
        ("ab", "ba", "ba"),
        ("ab", "c", "abc"),
        ("abc", "ca", "bca"),
        ("xaybz", "ba", "xybza"),
        ("", "ab", "ab"),
        ("ab", "", "ab"),
    ],
)
def test_order_of_items(live: str, applied: str, merged: str) -> None:
    """Applied items in their order; others stay before the shared item they stood before."""
    assert names(merge(POD, containers(*live), containers(*applied))) == merged


LETTERS = st.lists(st.sampled_from("abcdef"), unique=True).map("".join)


@given(LETTERS, LETTERS)
def test_items_are_kept_and_ordered(live: str, applied: str) -> None:
    merged = names(merge(POD, containers(*live), containers(*applied)))
    assert sorted(merged) == sorted({*live, *applied})
    assert [name for name in merged if name in applied] == list(applied)
    alone = [name for name in live if name not in applied]
    assert [name for name in merged if name in alone] == alone


SMALL = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"))
CONTAINERS = st.lists(
    st.builds(
        lambda name, image, env: {
            "name": name,
            **({"image": image} if image else {}),
            **({"env": [{"name": key, "value": value} for key, value in env.items()]} if env else {}),
        },
        st.sampled_from("abc"),
        st.sampled_from(["", "x", "y"]),
        SMALL,
    ),
    unique_by=lambda container: container["name"],
)
CONFIGURATIONS = st.builds(
    lambda labels, items, host: {
        **({"metadata": {"labels": labels}} if labels else {}),
        "spec": {**({"containers": items} if items else {}), **({"hostname": host} if host else {})},
    },
    SMALL,
    CONTAINERS,
    st.sampled_from(["", "h"]),
)


@given(CONFIGURATIONS, CONFIGURATIONS)
def test_applying_twice_is_applying_once(live: dict[str, Any], applied: dict[str, Any]) -> None:
    once = merge(POD, live, applied)
    assert merge(POD, once, applied) == once


@given(CONFIGURATIONS, CONFIGURATIONS)
def test_giving_up_leaves_what_is_applied(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Applied by one manager to nothing, then another configuration: only the second is left."""
    last, now = fields(first), fields(second)
    left = prune(POD, merge(POD, first, second), last, now)
    assert fields(left) == now


@given(CONFIGURATIONS, CONFIGURATIONS)
def test_what_others_apply_stays(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    merged = merge(POD, mine, theirs)
    assert fields(prune(POD, merged, fields(mine), fields(theirs))) == fields(theirs)


def fields(data: dict[str, Any]) -> dict[str, Any]:
    """Of what says anything at all: an empty spec does, but nothing of it is left over."""
    found = configured_fields(POD, data, "")
    return {element: below for element, below in found.items() if below}
