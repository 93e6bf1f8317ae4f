"""Bootstrap tokens sign what who joins reads, and end when they have expired (R-SYS-8)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from podling.controllers.bootstrap_tokens import (
    PUBLISHED,
    BootstrapSigner,
    ClusterInfo,
    TokenCleaner,
    cluster_info,
)
from podling.controllers.kubernetes_service import endpoints
from podling.model.rules.bootstrap_tokens import SECRET_TYPE, signature
from podling.model.types.core import ConfigMap, Namespace, Secret
from podling.model.types.meta import ObjectMeta

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

SYSTEM, PUBLIC, INFO = "kube-system", "kube-public", "cluster-info"
GOOD = {"token-id": "aaaaaa", "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"}
CONFIG = "apiVersion: v1\nkind: Config\nclusters: []\n"
KUBERNETES_SAID = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFhYWFhYSJ9..1O3D49foXI2WieiWQgpnPmzDH4UicPOvRr-aMM-6LLk"


def token(name: str = "aaaaaa", **said: str) -> Secret:
    data = GOOD | {"token-id": name} | {key.replace("_", "-"): value for key, value in said.items()}
    meta = ObjectMeta(name=f"bootstrap-token-{name}", namespace=SYSTEM)
    return Secret(metadata=meta, type=SECRET_TYPE, data={key: value.encode() for key, value in data.items()})


def test_a_signature_is_that_of_kubernetes() -> None:
    assert signature(CONFIG, "aaaaaa", GOOD["token-secret"]) == KUBERNETES_SAID


@pytest.fixture
async def signing(cluster: Cluster) -> Cluster:
    for name in (SYSTEM, PUBLIC):
        await cluster.client.create(Namespace(metadata=ObjectMeta(name=name)))
    tokens = cluster.informers.of(Secret, SYSTEM, field_selector=f"type={SECRET_TYPE}")
    infos = cluster.informers.of(ConfigMap)
    await cluster.run(
        BootstrapSigner(cluster.account("bootstrap-signer"), infos, tokens, cluster.clock),
        TokenCleaner(cluster.account("token-cleaner"), tokens, cluster.clock),
    )
    data = {"kubeconfig": CONFIG, "jws-kubeconfig-zzzzzz": "of no token", "other": "stays"}
    meta = ObjectMeta(name=INFO, namespace=PUBLIC)
    await cluster.client.create(ConfigMap(metadata=meta, data=data))
    return cluster


async def signatures(cluster: Cluster) -> set[str]:
    await cluster.settle()
    data = (await cluster.client.get(ConfigMap, INFO, PUBLIC)).data
    assert data["other"] == "stays"
    return {key for key in data if key.startswith("jws-")}


@pytest.mark.parametrize(
    ("said", "signs"),
    [
        ({}, True),
        ({"expiration": "2030-01-01T00:00:00Z"}, True),
        ({"token_secret": "short"}, True),
        ({"token_secret": ""}, False),
        ({"token_id": "bbbbbb"}, False),
        ({"usage_bootstrap_signing": "TRUE"}, False),
        ({"usage_bootstrap_signing": ""}, False),
        ({"expiration": "2020-01-01T00:00:00Z"}, False),
        ({"expiration": "nonsense"}, False),
    ],
)
async def test_which_tokens_sign(said: dict[str, str], signs: bool, signing: Cluster) -> None:
    await signing.client.create(token(**said))
    assert await signatures(signing) == ({"jws-kubeconfig-aaaaaa"} if signs else set())


async def test_a_signature_follows_what_is_signed_and_who_signs(signing: Cluster) -> None:
    await signing.client.create(token())
    await signatures(signing)
    said = {"data": {"kubeconfig": "another"}}
    await signing.client.patch(ConfigMap, INFO, PUBLIC, said)
    await signing.settle()
    data = (await signing.client.get(ConfigMap, INFO, PUBLIC)).data
    assert data["jws-kubeconfig-aaaaaa"] == signature("another", "aaaaaa", GOOD["token-secret"])
    await signing.client.delete(Secret, "bootstrap-token-aaaaaa", SYSTEM)
    assert await signatures(signing) == set()


async def test_tokens_that_have_expired_are_deleted(signing: Cluster) -> None:
    for name, until in (
        ("aaaaaa", ""),
        ("bbbbbb", "2026-01-02T03:04:15Z"),
        ("cccccc", "2020-01-01T00:00:00Z"),
        ("dddddd", "nonsense"),
    ):
        await signing.client.create(token(name, expiration=until))
    await signing.client.create(
        Secret(metadata=ObjectMeta(name="other", namespace=SYSTEM), data={"expiration": b"nonsense"})
    )
    await signing.settle()

    async def left() -> list[str]:
        return [one.metadata.name for one in (await signing.client.list(Secret, SYSTEM)).items]

    assert await left() == ["bootstrap-token-aaaaaa", "bootstrap-token-bbbbbb", "other"]
    signing.clock.move(11)
    await signing.client.patch(Secret, "bootstrap-token-bbbbbb", SYSTEM, {"metadata": {"labels": {"a": "b"}}})
    await signing.settle()
    assert await left() == ["bootstrap-token-aaaaaa", "other"]


PLACE = "https://192.0.2.1:6443"


async def published(cluster: Cluster) -> str:
    """What is published once the server at PLACE has begun."""
    namespaces, infos = cluster.informers.of(Namespace), cluster.informers.of(ConfigMap, PUBLIC)
    await cluster.run(ClusterInfo(cluster.client, namespaces, infos, PLACE, "PEM"))
    return (await cluster.client.get(ConfigMap, INFO, PUBLIC)).data["kubeconfig"]


async def test_the_cluster_info_is_what_kubeadm_writes(cluster: Cluster) -> None:
    await cluster.client.create(Namespace(metadata=ObjectMeta(name=PUBLIC)))
    assert await published(cluster) == (
        "apiVersion: v1\n"
        "clusters:\n"
        "- cluster:\n"
        "    certificate-authority-data: UEVN\n"
        "    server: https://192.0.2.1:6443\n"
        "  name: ''\n"
        "contexts: null\n"
        "current-context: ''\n"
        "kind: Config\n"
        "users: null\n"
    )


@pytest.mark.parametrize(
    ("server", "authority", "marks", "stays"),
    [
        ("https://192.0.2.1:6443", "PEM", {PUBLISHED: "true"}, True),
        ("https://192.0.2.2:6443", "PEM", {PUBLISHED: "true"}, True),
        ("https://192.0.2.3:6443", "PEM", {PUBLISHED: "true"}, False),
        ("https://192.0.2.2:6443", "OTHER", {PUBLISHED: "true"}, False),
        ("https://192.0.2.3:6443", "PEM", {}, True),
    ],
)
async def test_the_cluster_info_of_another_server_stays_while_there_is_one(
    cluster: Cluster, server: str, authority: str, marks: dict[str, str], stays: bool
) -> None:
    await cluster.client.create(Namespace(metadata=ObjectMeta(name=PUBLIC)))
    await cluster.client.create(endpoints(["192.0.2.2"], 6443, None))
    data = {"kubeconfig": cluster_info(server, authority), "other": "stays"}
    await cluster.client.create(
        ConfigMap(metadata=ObjectMeta(name=INFO, namespace=PUBLIC, annotations=marks), data=data)
    )
    assert (await published(cluster) == data["kubeconfig"]) is stays
    assert (await cluster.client.get(ConfigMap, INFO, PUBLIC)).data["other"] == "stays"


GONE = "https://192.0.2.9:6443"


@pytest.mark.parametrize(
    ("known", "servers", "left"),
    [
        # Loopback addresses are none of an endpoint.
        ([], [("https://127.0.0.1:6443", "PEM"), ("https://127.0.0.1:7443", "PEM")], [GONE]),
        (["192.0.2.1"], [(PLACE, "PEM"), ("https://192.0.2.1:7443", "PEM")], [PLACE]),
        # An authority is being changed, one server after the other.
        (
            ["192.0.2.1", "192.0.2.2"],
            [(PLACE, "PEM"), ("https://192.0.2.2:6443", "OTHER")],
            [PLACE, "https://192.0.2.2:6443"],
        ),
    ],
    ids=["without endpoints", "one of them known", "two authorities"],
)
async def test_servers_that_do_not_know_of_each_other_do_not_write_in_turns(
    cluster: Cluster, known: list[str], servers: list[tuple[str, str]], left: list[str]
) -> None:
    await cluster.client.create(Namespace(metadata=ObjectMeta(name=PUBLIC)))
    if known:
        await cluster.client.create(endpoints(known, 6443, None))
    infos = cluster.informers.of(ConfigMap, PUBLIC)
    async with asyncio.timeout(20):
        for server, authority in servers:
            of = cluster.client, cluster.informers.of(Namespace), infos
            await cluster.run(ClusterInfo(*of, server, authority))
        gone = {"data": {"kubeconfig": cluster_info(GONE, "PEM")}}
        await cluster.client.patch(ConfigMap, INFO, PUBLIC, gone)
        await cluster.settle()
    found = (await cluster.client.get(ConfigMap, INFO, PUBLIC)).data["kubeconfig"]
    assert any(f"server: {one}\n" in found for one in left)
