"""R-SYS-8: strategic merge patches whose lists and directives are of every sort of value, right and wrong,
are merged or refused as by Kubernetes, in its words; so are patches that have a key twice.

Where Kubernetes' server panics nothing is asked: of items that are maps or lists in `$retainKeys` and in the
order of a list of texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server

DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
CONTAINER = {"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}]}
DEPLOYMENT = {
    "metadata": {"name": "d", "finalizers": ["a/b", "c/d"]},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}},
    },
}
FLAT: tuple[Any, ...] = (
    [None], [1], ["a"], ["a/b"], [True], [1.5], [1, None], [None, None], [], {}, {"a": 1}, "a", 1, None,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    *FLAT, [[]], [{"name": "A"}, None], [None, {"name": "A"}], [{"name": "A"}, 1], [{"name": None}],
    [{"name": 1}], [{"name": 1}, {"name": 1}], [{}], [{"image": "j"}], [{"$patch": "delete"}],
    [{"$patch": "delete", "name": None}], [{"$patch": "delete", "name": "A"}], [{"$patch": None}],
    [{"$patch": None, "name": "A"}], [{"$patch": 1}], [{"$patch": "x"}], [{"$patch": "replace"}],
    [{"$patch": "merge"}], [{"$patch": "merge", "name": "A"}],
)  # fmt: skip


def of_container(**fields: Any) -> Any:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", **fields}]}}}}


def of_metadata(**fields: Any) -> Any:
    return {"metadata": fields}


PATCHES: Mapping[str, Callable[[Any], Any]] = {
    "items with names": lambda value: of_container(env=value),
    "items of a list that is not there": lambda value: of_container(volumeMounts=value),
    "items without names": lambda value: of_container(args=value),
    "texts": lambda value: of_metadata(finalizers=value),
    "an order": lambda value: of_container(**{"$setElementOrder/env": value}),
    "an order of what is patched": lambda value: of_container(
        **{"$setElementOrder/env": value}, env=[{"name": "A", "value": "2"}]
    ),
    "an order of a list that is not there": lambda value: of_container(
        **{"$setElementOrder/volumeMounts": value}
    ),
    "an order of a list that comes": lambda value: of_container(
        **{"$setElementOrder/volumeMounts": value}, volumeMounts=[{"mountPath": "A"}]
    ),
    "items in an order": lambda value: of_container(
        **{"$setElementOrder/env": [{"name": "A"}, {"name": "B"}]}, env=value
    ),
    "texts in an order": lambda value: of_metadata(
        **{"$setElementOrder/finalizers": value}, finalizers=["e/f"]
    ),
    "texts that go": lambda value: of_metadata(**{"$deleteFromPrimitiveList/finalizers": value}),
    "texts that go from nothing": lambda value: of_metadata(**{"$deleteFromPrimitiveList/nope": value}),
    "labels": lambda value: of_metadata(labels=value),
    "what a map does": lambda value: of_metadata(labels={"$patch": value}),
    "what an object does": lambda value: {"$patch": value},
}
OF_FLAT: Mapping[str, Callable[[Any], Any]] = {
    "an order of texts": lambda value: of_metadata(**{"$setElementOrder/finalizers": value}),
    "keys that stay": lambda value: {"spec": {"strategy": {"$retainKeys": value, "type": "Recreate"}}},
}


@pytest.mark.parametrize("name", [*PATCHES, *OF_FLAT])
def test_a_patch_is_merged_alike(name: str, kubernetes: Server, podling: Server) -> None:
    patch, values = (PATCHES[name], VALUES) if name in PATCHES else (OF_FLAT[name], FLAT)
    header = {"Content_Type": STRATEGIC_PATCH}
    asks = [
        Ask("POST", DEPLOYMENTS, DEPLOYMENT),
        *(Ask("PATCH", f"{DEPLOYMENTS}/d?dryRun=All", patch(one), header, f"{one}") for one in values),
    ]
    sequence = Compared(name, asks, apart=True)
    namespace = f"strategic-{name.replace(' ', '-')}"
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


REVISIONS = "/apis/apps/v1/namespaces/{ns}/controllerrevisions"
TWICE = (
    b'{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i","image":"k"}]}}}}',
    b'{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","name":"B"}]}]}}}}',
    b'{"metadata":{"labels":{"a":"b","a":"c"}}}',
    b'{"nope":[[{"a":1,"a":2}]]}',
)
KEPT = (
    b'{"metadata":{"name":"r"},"revision":1,"data":{"a":[{"b":1,"b":2}]}}',
    b'{"metadata":{"name":"r"},"revision":1,"data":{"b":1,"b":2}}',
    b'{"metadata":{"name":"r"},"revision":1,"revision":2,"data":{}}',
)
"""What a ControllerRevision keeps is not looked into."""


@pytest.mark.parametrize("validation", ["Strict", "Warn", "Ignore"])
def test_a_key_that_is_there_twice(validation: str, kubernetes: Server, podling: Server) -> None:
    query = f"?dryRun=All&fieldValidation={validation}"
    asks = [
        Ask("POST", DEPLOYMENTS, DEPLOYMENT),
        *(
            Ask("PATCH", f"{DEPLOYMENTS}/d{query}", body, {"Content_Type": sort})
            for sort in (STRATEGIC_PATCH, MERGE_PATCH)
            for body in TWICE
        ),
        *(Ask("POST", f"{REVISIONS}{query}", body) for body in KEPT),
    ]
    sequence = Compared("twice", asks, apart=True)
    found = unnamed(differences(sequence, f"twice-{validation.lower()}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
