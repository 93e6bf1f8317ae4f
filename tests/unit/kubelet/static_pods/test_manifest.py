from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from podling.kubelet.static_pods.files import ManifestError, static_pod

FILE = Path("/etc/manifests/web.yaml")
SEEN = "2026-01-02T03:04:05Z"
PLAIN: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "c", "image": "app:1"}]},
}


def read(data: Any = PLAIN, file: Path = FILE, node: str = "N1") -> Any:
    return static_pod(yaml.safe_dump(data).encode(), file, node, SEEN)


def with_spec(**more: Any) -> dict[str, Any]:
    return {**PLAIN, "spec": {**PLAIN["spec"], **more}}


def test_what_the_api_server_would_have_filled_in() -> None:
    pod = read()
    assert (pod.metadata.namespace, pod.metadata.name, pod.spec.node_name) == ("default", "web-n1", "N1")
    assert (pod.spec.restart_policy, pod.spec.dns_policy) == ("Always", "ClusterFirst")
    assert pod.spec.containers[0].image_pull_policy == "IfNotPresent"
    assert pod.metadata.annotations == {
        "kubernetes.io/config.hash": pod.metadata.uid,
        "kubernetes.io/config.seen": SEEN,
        "kubernetes.io/config.source": "file",
    }


def test_the_uid_follows_from_node_file_and_what_it_says() -> None:
    """R-INIT-11: a kubelet that comes back knows its pods again."""
    others = [read(with_spec(hostname="x")), read(file=Path("/other")), read(node="n2")]
    assert read().metadata.uid == read().metadata.uid
    assert len({read().metadata.uid, *(other.metadata.uid for other in others)}) == 4
    named = {**PLAIN, "metadata": {"name": "web", "uid": "own"}}
    assert read(named).metadata.annotations["kubernetes.io/config.hash"] == "own"


def test_dates_are_words() -> None:
    text = b"{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {since: 2026-01-02}}, "
    text += b"spec: {containers: [{name: c, image: i}]}}"
    assert static_pod(text, FILE, "n1", SEEN).metadata.labels == {"since": "2026-01-02"}


REFERENCES = [
    ({"serviceAccountName": "robot"}, "a service account"),
    ({"imagePullSecrets": [{"name": "s"}]}, "image pull secrets"),
    ({"volumes": [{"name": "v", "configMap": {"name": "c"}}]}, 'a configmap (volume "v")'),
    ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, 'a secret (volume "v")'),
    (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        'a persistent volume claim (volume "v")',
    ),
    (
        {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
        'objects of the API (volume "v")',
    ),
    (
        {"initContainers": [{"name": "i", "image": "i:1", "envFrom": [{"secretRef": {"name": "s"}}]}]},
        'the secret "s"',
    ),
]


@pytest.mark.parametrize(("spec", "what"), REFERENCES)
def test_what_only_a_server_could_look_up_is_refused(spec: dict[str, Any], what: str) -> None:
    with pytest.raises(ManifestError) as refused:
        read(with_spec(**spec))
    assert str(refused.value) == f"a static pod may not refer to {what}"


NO_PODS = [
    b"",
    b"{",
    b"[]",
    b"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
    b"{apiVersion: v1, kind: Pod}",
    b"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: 5}}",
    b"\xff\xfe\x00",
]


@pytest.mark.parametrize("text", NO_PODS)
def test_what_is_no_pod_is_refused(text: bytes) -> None:
    with pytest.raises(ManifestError):
        static_pod(text, FILE, "n1", SEEN)
