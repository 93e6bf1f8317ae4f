"""R-SYS-8: what all kinds share, asked in odd ways: deletions, scaling, selectors, discovery, who one is."""

from __future__ import annotations

import pytest

from peer.named_differences import unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server

CONFIG_MAPS = "/api/v1/namespaces/{ns}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
SCALE = f"{DEPLOYMENTS}/d/scale"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
MERGE = {"Content_Type": MERGE_PATCH}
HELD = {"finalizers": ["example.test/held"]}
SCALED_UP = {"metadata": {"finalizers": None}, "spec": {"replicas": 4}}
FREED = {"metadata": {"finalizers": None}, "data": {"x": "y"}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}
SERVICE = {"spec": {"clusterIP": "None"}}
AS_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
SCALED = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 3}}
TWICE = b'{"spec":{"replicas":2,"replicas":3}}'
UNKNOWN = {"spec": {"replicas": 2, "unknown": 1}}
SELECTORS = (
    *("==", "=", "=%3D", "=a", "=a%3D%3Db", "=metadata.name%3D%3D", "=metadata.name", "=,", "=%3D%3D"),
    *(
        "=metadata.name%3Da,",
        "=metadata.name%3D%5Cx",
        "=metadata.name%3Da%5C,b",
        "=%21%3D",
        "=!metadata.name",
    ),
    *("=%3D,metadata.name%3Dx", "=metadata.name%3Da,,metadata.namespace%3Db", "=a%3Db,%3D"),
)


def config_map(name: str, **metadata: object) -> dict[str, object]:
    return {"metadata": {"name": name, **metadata}, "data": {"a": "b"}}


def patched(body: object, media_type: str = MERGE_PATCH, query: str = "") -> Ask:
    return Ask("PATCH", f"{SCALE}{query}", body, {"Content_Type": media_type})


def sequences() -> list[Compared]:
    return [
        Compared("the last finalizer", [
            Ask("POST", CONFIG_MAPS, config_map("put", **HELD)),
            Ask("DELETE", f"{CONFIG_MAPS}/put"),
            Ask("PUT", f"{CONFIG_MAPS}/put", {"metadata": {"name": "put"}, "data": {"new": "1"}}),
            Ask("GET", f"{CONFIG_MAPS}/put"),
            Ask("POST", CONFIG_MAPS, config_map("patch", **HELD)),
            Ask("DELETE", f"{CONFIG_MAPS}/patch"),
            Ask("PATCH", f"{CONFIG_MAPS}/patch", FREED, MERGE),
            Ask("GET", f"{CONFIG_MAPS}/patch"),
            Ask("POST", CONFIG_MAPS, config_map("dry", **HELD)),
            Ask("DELETE", f"{CONFIG_MAPS}/dry"),
            Ask("PATCH", f"{CONFIG_MAPS}/dry?dryRun=All", FREED, MERGE),
            Ask("GET", f"{CONFIG_MAPS}/dry"),
            Ask("POST", DEPLOYMENTS, {**DEPLOYMENT, "metadata": {"name": "d", **HELD}}),
            Ask("DELETE", f"{DEPLOYMENTS}/d"),
            Ask("PATCH", f"{DEPLOYMENTS}/d", SCALED_UP, MERGE),
        ]),
        Compared("a sent generation", [
            Ask("POST", CONFIG_MAPS, config_map("n", generation=9)),
            Ask("PUT", f"{CONFIG_MAPS}/n", config_map("n", generation=3)),
            Ask("PATCH", f"{CONFIG_MAPS}/n", {"metadata": {"generation": 4}}, MERGE),
            Ask("POST", DEPLOYMENTS, {**DEPLOYMENT, "metadata": {"name": "d", "generation": 9}}),
        ]),
        Compared("scaling", [
            Ask("POST", DEPLOYMENTS, DEPLOYMENT),
            patched({"spec": {"replicas": 2}}, query="?force=true"),
            patched({"spec": {"replicas": 2}}, STRATEGIC_PATCH, "?force=false"),
            patched({"spec": {"replicas": 2}}, query="?fieldValidation=Odd"),
            patched(UNKNOWN, query="?fieldValidation=Warn"),
            patched(UNKNOWN, query="?fieldValidation=Ignore"),
            patched(UNKNOWN),
            patched(TWICE),
            patched([{"op": "replace", "path": "/spec/replicas", "value": 5}], JSON_PATCH),
            patched([{"op": "replace", "path": "/spec/unknown", "value": 5}], JSON_PATCH),
            patched(SCALED, APPLY, "?fieldManager=m&force=true"),
            patched(SCALED, APPLY),
            patched({"spec": {"replicas": 3}}, APPLY, "?fieldManager=m"),
            patched({**SCALED, "kind": "Other"}, APPLY, "?fieldManager=m"),
            patched({**SCALED, "metadata": {"name": "other"}}, APPLY, "?fieldManager=m"),
            patched({"spec": {"replicas": -1}}),
            patched({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 2}}),
            patched({"metadata": {"name": "x"}, "spec": {"replicas": 2}}),
            patched({"status": {"replicas": 9}}),
            patched({"spec": {"replicas": 8}}, query="?dryRun=All"),
            patched({"spec": {"replicas": 6}}, STRATEGIC_PATCH),
            Ask("GET", SCALE),
            Ask("GET", f"{DEPLOYMENTS}/d"),
        ]),
        Compared("members that are not there", [
            Ask("POST", CONFIG_MAPS, config_map("n")),
            *(
                Ask("PATCH", f"{CONFIG_MAPS}/n", [operation], {"Content_Type": JSON_PATCH})
                for operation in (
                    {"op": "replace", "path": "/data/b", "value": "x"},
                    {"op": "test", "path": "/data/none", "value": None},
                    {"op": "copy", "from": "/data/none", "path": "/data/c"},
                )
            ),
            Ask("PATCH", f"{CONFIG_MAPS}/n?dryRun=x&dryRun=y", {}, MERGE),
            Ask("PUT", f"{CONFIG_MAPS}/n?fieldValidation=Odd", config_map("n")),
        ]),
        Compared("a watch as a list", [
            Ask("POST", CONFIG_MAPS, config_map("w")),
            Ask("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=5", headers={"Accept": AS_LIST}),
        ]),
        Compared("names of services", [
            Ask("POST", "/api/v1/namespaces/{ns}/services", {**SERVICE, "metadata": {"name": name}})
            for name in ("1abc", "1", "a.b", "a" * 64, "-a", "A", "a-")
        ]),
        Compared("field selectors", [Ask("GET", f"{CONFIG_MAPS}?fieldSelector{one}") for one in SELECTORS]),
        Compared("where the server is", [Ask("GET", "/api")]),
        Compared("who one is", [Ask("POST", REVIEWS, {})]),
    ]  # fmt: skip


@pytest.mark.parametrize("sequence", sequences(), ids=lambda sequence: sequence.name)
def test_machinery(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = f"machinery-{sequence.name.replace(' ', '-')}"
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


def test_groups_are_listed_in_one_order(kubernetes: Server, podling: Server) -> None:
    theirs, ours = (
        [group["name"] for group in server.ask("GET", "/apis").body["groups"]]
        for server in (kubernetes, podling)
    )
    assert ours == [name for name in theirs if name in ours]
