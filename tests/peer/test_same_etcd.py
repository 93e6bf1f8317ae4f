"""podling and kube-apiserver on one etcd, one after the other: each serves what the other stored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from peer import control_plane
from peer.every_kind import Sample, samples
from peer.server import Server
from podling.apiserver.kinds.kind import storage_key
from podling.storage.etcd.connection import Connection
from podling.storage.etcd.keys import in_etcd, of_etcd
from podling.storage.etcd.store import EtcdStorage
from podling.storage.etcd.store import open as open_store

MERGE_PATCH = "application/merge-patch+json"
EVERY = [one for one in samples() if not one.resource.view]


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COLUMNS = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
ALIKE = {
    "served": True,
    "schema": SCHEMA,
    "subresources": {"status": {}},
    "additionalPrinterColumns": COLUMNS,
}
CONVERSION = {
    "strategy": "Webhook",
    "webhook": {"clientConfig": {"url": "https://convert.test/"}, "conversionReviewVersions": ["v1"]},
}
OTHER = {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}
OF_VERSIONS: Mapping[str, Mapping[str, Any]] = {
    "alikes": {
        "versions": [{**ALIKE, "name": "v1", "storage": True}, {**ALIKE, "name": "v2", "storage": False}]
    },
    "others": {"versions": [{**ALIKE, "name": "v1", "storage": True}, OTHER], "conversion": CONVERSION},
}
"""Definitions of several versions, which Kubernetes stores in different forms."""


def definition(plural: str) -> dict[str, Any]:
    names = {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].title()}
    spec = {"group": "forms.test", "names": names, "scope": "Namespaced", **OF_VERSIONS[plural]}
    return {"metadata": {"name": f"{plural}.forms.test"}, "spec": spec}


def definitions(server: Server) -> dict[str, Any]:
    return {one: server.ask("GET", f"{DEFINITIONS}/{one}.forms.test").body["spec"] for one in OF_VERSIONS}


def filled(text: str) -> str:
    return text.replace("{ns}", "default")


def make(server: Server, letter: str) -> dict[str, Any]:
    """One object of every kind; the answers by kind."""
    with server.asking() as asking:
        # It is made once the server is ready.
        next(
            one for one in asking.watch("/api/v1/namespaces?watch=1") if one["metadata"]["name"] == "default"
        )
    account = {"metadata": {"name": "default"}}
    server.ask("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    made = {}
    for one in EVERY:
        body = json.loads(filled(json.dumps(one.body(letter))))
        answer = server.ask("POST", filled(one.items), body)
        assert answer.code == 201, (one.name, answer.body)
        made[one.name] = answer.body
    return made


def found(server: Server, letter: str) -> dict[str, Any]:
    answers = {one.name: server.ask("GET", filled(one.item(letter))) for one in EVERY}
    assert {name: answer.code for name, answer in answers.items() if answer.code != 200} == {}
    return {name: answer.body for name, answer in answers.items()}


def keys(url: str) -> set[str]:
    """Of what a store finds, as etcd has them."""

    async def read() -> set[str]:
        store: EtcdStorage = await open_store(Connection([url]))
        listing = await store.list("")
        await store.close()
        return {in_etcd(record.key) for record in listing.records}

    return asyncio.run(read())


def settled(objects: Mapping[str, Any]) -> dict[str, Any]:
    """Without what controllers of either server write by themselves."""
    kept = json.loads(json.dumps(objects))
    for one in kept.values():
        one.pop("status", None)
        one["metadata"].pop("managedFields", None)
        one["metadata"].pop("resourceVersion", None)
        one["metadata"].pop("generation", None)
    return dict(kept)


def differing(ones: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{name} {key}": (one.get(key), others[name].get(key))
        for name, one in ones.items()
        for key in one.keys() | others[name].keys()
        if one.get(key) != others[name].get(key)
    }


def key_of(one: Sample, letter: str) -> str:
    namespace = "default" if one.resource.namespaced else ""
    return storage_key(one.resource, namespace, filled(one.called(letter)))


@pytest.fixture
def url(kubernetes_programs: Path, tmp_path: Path) -> Any:
    with control_plane.etcd_server(kubernetes_programs / "etcd", tmp_path, durable=False) as etcd:
        yield etcd


def test_each_serves_what_the_other_stored(kubernetes_programs: Path, tmp_path: Path, url: str) -> None:
    of_ours, of_theirs = tmp_path / "podling", tmp_path / "kubernetes"
    of_ours.mkdir()
    of_theirs.mkdir()
    with control_plane.podling(of_ours, "--etcd-servers", url) as podling:
        ours = make(podling, "a")
        assert settled(found(podling, "a")) == settled(ours)
    assert {in_etcd(key_of(one, "a")) for one in EVERY} <= keys(url)

    with control_plane.kubernetes(kubernetes_programs, of_theirs, etcd_url=url) as kubernetes:
        assert differing(settled(found(kubernetes, "a")), settled(ours)) == {}
        make(kubernetes, "b")
        for plural in OF_VERSIONS:
            answer = kubernetes.ask("POST", DEFINITIONS, definition(plural))
            assert answer.code == 201, answer.body
        theirs, defined = found(kubernetes, "b"), definitions(kubernetes)
        patch = {"metadata": {"labels": {"seen": "there"}}}
        for one in EVERY:
            kubernetes.ask("PATCH", filled(one.item("a")), patch, Content_Type=MERGE_PATCH)
    assert {in_etcd(key_of(one, "b")) for one in EVERY} <= keys(url)

    with control_plane.podling(of_ours, "--etcd-servers", url) as podling:
        assert differing(settled(found(podling, "b")), settled(theirs)) == {}
        assert definitions(podling) == defined
        again = found(podling, "a")
        assert {one["metadata"]["labels"].get("seen") for one in again.values()} == {"there"}
        for one in EVERY:
            answer = podling.ask("PATCH", filled(one.item("b")), patch, Content_Type=MERGE_PATCH)
            assert answer.code == 200, (one.name, answer.body)


@pytest.mark.parametrize(
    "key",
    [
        "/registry/ranges/serviceips",
        "/registry/peerserverleases/a",
        "compact_rev_key",
        "/other/pods/a/b",
    ],
)
def test_what_is_no_object_is_passed_over(key: str) -> None:
    assert of_etcd(key) is None


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_a_key_goes_there_and_back(one: Sample) -> None:
    key = key_of(one, "a")
    assert of_etcd(in_etcd(key)) == key
