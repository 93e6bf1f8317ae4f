"""R-SYS-1: what a write changed, between any two objects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.apply.managed_fields import difference, intersection, paths, union
from podling.apiserver.apply.schema import KeyMissing, changes, owned, schema_of
from podling.model.types.core import ServiceAccount
from podling.model.types.pod import Pod

SMALL = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), min_size=1)
CONTAINERS: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abc")},
        optional={
            "image": st.sampled_from("xy"),
            "command": st.lists(st.sampled_from("xy"), min_size=1, max_size=2),
            "ports": st.just([{"containerPort": 80}]) | st.just([{"containerPort": 80, "protocol": "UDP"}]),
        },
    ),
    min_size=1,
    unique_by=lambda container: container["name"],
)
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": st.sampled_from("pq")},
            optional={"labels": SMALL, "finalizers": st.sampled_from([["a/x"], ["a/x", "b/y"]])},
        ),
        "spec": st.fixed_dictionaries(
            {"containers": CONTAINERS}, optional={"hostname": st.sampled_from("xy"), "nodeSelector": SMALL}
        ),
    }
)


def everything(pod: Any) -> Any:
    return owned(schema_of(Pod), pod)


@given(PODS)
def test_nothing_changed(pod: Any) -> None:
    assert changes(Pod, pod, pod) == ({}, {})


@given(PODS, PODS)
def test_what_is_there_is_taken_and_what_is_gone_removed(old: Any, new: Any) -> None:
    taken, removed = changes(Pod, old, new)
    before, after = everything(old), everything(new)
    assert set(paths(taken)) <= set(paths(after))
    assert set(paths(removed)) == set(paths(difference(before, after)))
    assert set(paths(difference(after, before))) <= set(paths(taken))
    assert intersection(taken, removed) == {}
    assert set(paths(union(difference(before, removed), taken))) == set(paths(after))


@given(PODS, PODS)
def test_there_and_back(old: Any, new: Any) -> None:
    there, back = changes(Pod, old, new), changes(Pod, new, old)
    assert there.removed == difference(back.taken, intersection(everything(old), everything(new)))


@given(PODS)
def test_identity_is_nobodys(pod: Any) -> None:
    assert ("f:metadata", "f:name") not in set(paths(everything(pod)))


def test_items_of_the_same_keys_and_atomic_items_are_one_value() -> None:
    def pod(*env: dict[str, str]) -> Any:
        return {
            "spec": {"imagePullSecrets": [{"name": "s"}], "containers": [{"name": "c", "env": list(env)}]}
        }

    twice, once = (
        pod({"name": "a", "value": "1"}, {"name": "a", "value": "2"}),
        pod({"name": "a", "value": "2"}),
    )
    assert everything(twice)["f:spec"] == {
        ".": {},
        "f:imagePullSecrets": {".": {}, 'k:{"name":"s"}': {}},
        "f:containers": {
            ".": {},
            'k:{"name":"c"}': {".": {}, "f:name": {}, "f:env": {".": {}, 'k:{"name":"a"}': {}}},
        },
    }
    taken, removed = changes(Pod, twice, once)
    assert list(paths(taken))[-1][-1] == "f:value"
    assert list(paths(removed))[-1][-1] == 'k:{"name":"a"}'


def test_an_item_without_its_key_has_no_path() -> None:
    with pytest.raises(KeyMissing, match="name"):
        owned(schema_of(ServiceAccount), {"secrets": [{"kind": "Secret"}]})
