"""Strategic merge patch: lists as sets of named items, and the directives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.patch.strategic import lookup_of, strategic_merge_patch
from podling.model.codec.fields import shape_of
from podling.model.errors import StatusError
from podling.model.types.pod import Pod
from podling.model.types.policy import PodDisruptionBudget


def patched(document: dict[str, Any], patch: Any) -> Any:
    return strategic_merge_patch(document, patch, lookup_of(shape_of(Pod)))


def containers(*items: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(items)}}


A, B, C = {"name": "a", "image": "1"}, {"name": "b", "image": "1"}, {"name": "c"}
ORDER = "$setElementOrder/containers"


NONE: dict[str, Any] = {"containers": [{"name": "c", "resources": {"limits": {"cpu": None}}}]}


def test_the_selector_of_a_budget_is_replaced() -> None:
    budget = lookup_of(shape_of(PodDisruptionBudget))
    standing = {"spec": {"selector": {"matchLabels": {"a": "b"}}}}
    patches: tuple[Any, ...] = ({"matchLabels": {"c": None}}, {"matchExpressions": []})
    for patch in patches:
        sent = {"spec": {"selector": patch}}
        assert strategic_merge_patch(standing, sent, budget) == sent


def test_a_null_in_a_list_stays() -> None:
    """Kubernetes reads one of a map of quantities as 0 (tests/peer/test_sequences.py)."""
    assert patched({"spec": {}}, {"spec": NONE}) == {"spec": NONE}
    assert patched({"spec": {"containers": [{"name": "d"}]}}, {"spec": NONE})["spec"]["containers"] == [
        *NONE["containers"],
        {"name": "d"},
    ]
    told = {"containers": [{"name": "c", "resources": {"$patch": "replace", "limits": {}}}]}
    assert patched({}, {"spec": told}) == {"spec": {"containers": [{"name": "c"}]}}


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        # maps
        (
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": {"b": "2"}}},
            {"metadata": {"labels": {"a": "1", "b": "2"}}},
        ),
        (
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": {"a": None}}},
            {"metadata": {"labels": {}}},
        ),
        ({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": None}}, {"metadata": {}}),
        (
            {"metadata": {}},
            {"metadata": {"labels": {"a": "1", "b": None}}},
            {"metadata": {"labels": {"a": "1"}}},
        ),
        (
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": {"$patch": "replace", "b": "2"}}},
            {"metadata": {"labels": {"b": "2"}}},
        ),
        (
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": {"$patch": "delete"}}},
            {"metadata": {"labels": {}}},
        ),
        # lists by merge key: items merge, new ones go first, as kubectl patch shows them
        (
            containers(A, B),
            containers({"name": "b", "image": "2"}),
            containers(A, {"name": "b", "image": "2"}),
        ),
        (containers(A), containers(C), containers(C, A)),
        (containers(A, B), containers({"name": "a", "$patch": "delete"}), containers(B)),
        (containers(A, B), containers({"$patch": "replace"}, C), containers(C)),
        (containers(A, B), containers({"name": "b", "image": None}), containers(A, {"name": "b"})),
        ({"spec": {}}, containers(A, {"name": "b", "$patch": "delete"}), containers(A)),
        # nested merge keys
        (
            containers({"name": "a", "env": [{"name": "X", "value": "1"}]}),
            containers({"name": "a", "env": [{"name": "X", "value": "2"}]}),
            containers({"name": "a", "env": [{"name": "X", "value": "2"}]}),
        ),
        (
            containers({"name": "a", "ports": [{"containerPort": 80}]}),
            containers({"name": "a", "ports": [{"containerPort": 80, "name": "web"}]}),
            containers({"name": "a", "ports": [{"containerPort": 80, "name": "web"}]}),
        ),
        # atomic lists
        (
            containers({"name": "a", "command": ["x"]}),
            containers({"name": "a", "command": ["y", "y"]}),
            containers({"name": "a", "command": ["y", "y"]}),
        ),
        (
            {"spec": {"tolerations": [{"key": "a"}]}},
            {"spec": {"tolerations": [{"key": "b"}]}},
            {"spec": {"tolerations": [{"key": "b"}]}},
        ),
        # lists of scalars
        (
            {"metadata": {"finalizers": ["x/a"]}},
            {"metadata": {"finalizers": ["x/b", "x/a"]}},
            {"metadata": {"finalizers": ["x/b", "x/a"]}},
        ),
        (
            {"metadata": {"finalizers": ["x/a", "x/b"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"]}},
            {"metadata": {"finalizers": ["x/b"]}},
        ),
        # order
        (containers(A, B), {"spec": {ORDER: [{"name": "b"}, {"name": "a"}]}}, containers(B, A)),
        (
            containers(A, B),
            {"spec": {ORDER: [{"name": "a"}, {"name": "b"}, {"name": "c"}], "containers": [C]}},
            containers(A, B, C),
        ),
        (containers(A, B, C), {"spec": {ORDER: [{"name": "c"}, {"name": "a"}]}}, containers(B, C, A)),
        ({"spec": {}}, {"spec": {ORDER: [{"name": "b"}, {"name": "a"}]}}, {"spec": {}}),
        ({"spec": {}}, {"spec": {ORDER: [{"name": "c"}], "containers": [C]}}, containers(C)),
        # how kubectl debug adds an ephemeral container (R-EPH-1)
        (
            {"spec": {"containers": [A], "ephemeralContainers": [B]}},
            {
                "spec": {
                    "$setElementOrder/ephemeralContainers": [{"name": "b"}, {"name": "c"}],
                    "ephemeralContainers": [{"name": "c", "image": "i"}],
                }
            },
            {"spec": {"containers": [A], "ephemeralContainers": [B, {"name": "c", "image": "i"}]}},
        ),
        # union members
        (
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            {
                "spec": {
                    "volumes": [
                        {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
                    ]
                }
            },
            {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}},
        ),
    ],
)
def test_patches(document: Any, patch: Any, expected: Any) -> None:
    before = repr((document, patch))
    assert patched(document, patch) == expected
    assert repr((document, patch)) == before


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        ([], 400),
        (containers({"image": "2"}), 400),
        ({"$patch": "merge"}, 400),
        (containers({"name": "a", "$patch": "merge"}), 400),
        ({"spec": {ORDER: {}}}, 400),
        ({"spec": {ORDER: [{"name": "b"}, {"name": "a"}], "containers": [A, B]}}, 400),
        ({"spec": {"$retainKeys": ["containers"], "nodeName": "n"}}, 400),
    ],
)
def test_refuses(patch: Any, code: int) -> None:
    with pytest.raises(StatusError) as refused:
        patched(containers(A, B), patch)
    assert refused.value.code == code


items = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcd")}, optional={"image": st.sampled_from("12")}),
    max_size=4,
    unique_by=lambda item: item["name"],
)


@given(items, items)
def test_merging_keeps_every_name_once_and_is_done_after_one_time(
    original: list[Any], patch: list[Any]
) -> None:
    once = patched(containers(*original), containers(*patch))
    names = [item["name"] for item in once["spec"]["containers"]]
    assert sorted(names) == sorted({item["name"] for item in [*original, *patch]})
    assert patched(once, containers(*patch)) == once


json_values = st.recursive(
    st.none() | st.integers(0, 2) | st.sampled_from(["replace", "delete", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "$patch",
                    "$retainKeys",
                    "spec",
                    "containers",
                    "name",
                    "env",
                    ORDER,
                    "$deleteFromPrimitiveList/env",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.just("spec"), json_values), json_values)
def test_only_status_errors_escape(document: Any, patch: Any) -> None:
    try:
        patched(document, patch)
    except StatusError as refused:
        assert refused.code in (400, 422)
