"""R-SYS-8: the same claims and volumes come to the same as by the kube-controller-manager.

Two API servers of podling are sent the same; beside one run podling's controllers, beside the other those of
the kube-controller-manager. After each step both must have the same claims and volumes, and have told the
same of them.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from peer.sequence import MERGE_PATCH, make_namespace
from peer.server import Asking
from peer.two_managers import Cluster, both_running

pytestmark = pytest.mark.interop("kube-controller-manager", "API server")

CONTROLLERS = (
    "persistentvolume-binder-controller,persistentvolumeclaim-protection-controller,"
    "persistentvolume-protection-controller,ephemeral-volume-controller"
)
LOOKS, SAME = 200, 8
"""At most so many looks, a tenth of a second apart; so many in a row must find nothing changed."""
PAUSE = 0.15
CLAIMS, VOLUMES = "/api/v1/namespaces/{}/persistentvolumeclaims", "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
PODS = "/api/v1/namespaces/{}/pods"
DEFAULT = "storageclass.kubernetes.io/is-default-class"
ONE, MANY, READ, ALONE = "ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod"
ISCSI = {"targetPortal": "1.2.3.4", "iqn": "iqn.2015-01.a:b", "lun": 0}


class Step(NamedTuple):
    """A request; `{ns}` in its target is the story's namespace."""

    method: str
    target: str
    body: Any = None


@pytest.fixture(scope="module")
def both(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, Cluster]]:
    there, here = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    own = {"pvclaimbinder-sync-period": "1s"}
    with both_running(kubernetes_programs, there, here, CONTROLLERS, own) as made:
        for cluster in made:
            for step in (volume("first"),):
                sent(cluster.asking, "first", step)
            _until_it_is_available(cluster)
        yield made[0], made[1]


def volume(name: str, size: str = "1Gi", *, meta: dict[str, Any] | None = None, **spec: Any) -> Step:
    body = {
        "capacity": {"storage": size},
        "accessModes": [ONE],
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "a.test", "volumeHandle": name},
        **spec,
    }
    return Step("POST", VOLUMES, {"metadata": {**(meta or {}), "name": name}, "spec": body})


def claim(name: str, size: str = "1Gi", *, meta: dict[str, Any] | None = None, **spec: Any) -> Step:
    body = {"accessModes": [ONE], "resources": {"requests": {"storage": size}}, **spec}
    return Step("POST", CLAIMS, {"metadata": {**(meta or {}), "name": name}, "spec": body})


def storage_class(name: str, *, meta: dict[str, Any] | None = None, **fields: Any) -> Step:
    body = {"metadata": {**(meta or {}), "name": name}, "provisioner": "a.test/b", **fields}
    return Step("POST", CLASSES, body)


def pod(name: str, claimed: str) -> Step:
    spec = {
        "containers": [{"name": "a", "image": "i"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claimed}}],
    }
    return Step("POST", PODS, {"metadata": {"name": name}, "spec": spec})


def own_claim(name: str, **meta: Any) -> Step:
    """A pod that brings its claim."""
    wants = {"accessModes": [ONE], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"metadata": meta, "spec": wants}
    spec = {
        "containers": [{"name": "a", "image": "i"}],
        "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}],
    }
    return Step("POST", PODS, {"metadata": {"name": name}, "spec": spec})


def gone(place: str, name: str) -> Step:
    return Step("DELETE", f"{place}/{name}")


def patched(place: str, name: str, **body: Any) -> Step:
    return Step("PATCH", f"{place}/{name}", body)


def ref(name: str, **more: Any) -> dict[str, Any]:
    return {"claimRef": {"namespace": "{ns}", "name": name, **more}}


STORIES: dict[str, list[list[Step]]] = {
    "binds-and-releases": [
        [volume("a1", "5Gi")],
        [claim("c")],
        [claim("d")],
        [gone(CLAIMS, "c")],
        [volume("a2", "1Gi")],
        [gone(VOLUMES, "a1"), gone(CLAIMS, "d")],
    ],
    "smallest": [
        [volume("b1", "9Gi"), volume("b2", "3Gi"), volume("b3", "1Gi"), volume("b4", "4Gi")],
        [claim("c", "2Gi")],
        [claim("d", "2Gi")],
        [claim("e", "20Gi")],
    ],
    "fewest-modes": [
        [
            volume("d1", "1Gi", accessModes=[ONE, MANY]),
            volume("d2", "9Gi"),
            volume("d3", "2Gi", accessModes=[READ]),
        ],
        [claim("c")],
        [claim("d", accessModes=[MANY])],
        [claim("e", accessModes=[READ])],
        [claim("f", accessModes=[ALONE])],
        [volume("d4", accessModes=[ALONE])],
    ],
    "selected": [
        [volume("e1"), volume("e2", "3Gi", meta={"labels": {"tier": "gold"}})],
        [claim("c", selector={"matchLabels": {"tier": "gold"}})],
        [claim("d", selector={"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]})],
        [claim("e", selector={"matchLabels": {"tier": "no"}})],
    ],
    "classes": [
        [volume("f1", storageClassName="none-such"), volume("f2")],
        [claim("c", storageClassName="none-such")],
        [claim("d", storageClassName="none-such")],
        [claim("e", storageClassName="")],
        [
            claim(
                "f",
                "2Gi",
                meta={"annotations": {"volume.beta.kubernetes.io/storage-class": "none-such"}},
            )
        ],
        [volume("f3", storageClassName="none-such")],
    ],
    "block": [
        [volume("g1", volumeMode="Block"), volume("g2", "2Gi")],
        [claim("c", volumeMode="Block")],
        [claim("d", volumeMode="Block")],
        [claim("e")],
        [volume("g3", volumeMode="Block", **ref("e2"))],
        [claim("e2")],
    ],
    "claim-names-volume": [
        [volume("h1"), volume("h2", "1Mi"), volume("h3", accessModes=[READ])],
        [claim("c", volumeName="h1")],
        [claim("d", volumeName="h1")],
        [claim("e", volumeName="h2")],
        [claim("f", volumeName="h3")],
        [claim("g", volumeName="h4")],
        [volume("h4", "7Gi")],
        [claim("h", volumeName="h5", storageClassName="x")],
        [volume("h5")],
        [volume("h6", volumeMode="Block")],
        [claim("i", volumeName="h6")],
    ],
    "volume-names-claim": [
        [volume("i1", "5Gi", **ref("c")), volume("i2")],
        [claim("c")],
        [claim("d")],
        [gone(CLAIMS, "c")],
        [claim("c")],
        [volume("i3", **ref("e", uid="of-another"))],
        [claim("e")],
        [volume("i4", "1Mi", **ref("f"))],
        [claim("f")],
        [volume("i5", storageClassName="x", **ref("g"))],
        [claim("g")],
    ],
    "both-name-others": [
        [volume("j1", **ref("c")), volume("j2", **ref("d"))],
        [claim("c", volumeName="j2")],
        [claim("d")],
    ],
    "lost": [
        [volume("k1")],
        [claim("c")],
        [gone(VOLUMES, "k1"), patched(VOLUMES, "k1", metadata={"finalizers": None})],
        [volume("k1")],
        [volume("k2"), claim("d", volumeName="k2")],
        [patched(VOLUMES, "k2", spec={"claimRef": None})],
        [gone(CLAIMS, "d")],
    ],
    "reclaimed": [
        [volume("l1", persistentVolumeReclaimPolicy="Delete")],
        [claim("c")],
        [gone(CLAIMS, "c")],
        [
            volume(
                "l2",
                persistentVolumeReclaimPolicy="Delete",
                meta={"annotations": {"pv.kubernetes.io/provisioned-by": "a.test/b"}},
            )
        ],
        [claim("d")],
        [gone(CLAIMS, "d")],
        [volume("l4", persistentVolumeReclaimPolicy="Delete", csi=None, iscsi=ISCSI)],
        [claim("f")],
        [gone(CLAIMS, "f")],
        [
            volume(
                "l5",
                persistentVolumeReclaimPolicy="Delete",
                csi=None,
                nfs={"server": "1.2.3.4", "path": "/a"},
            )
        ],
        [claim("g")],
        [gone(CLAIMS, "g")],
        [patched(VOLUMES, "l1", spec={"claimRef": None})],
    ],
    "provisioned": [
        [storage_class("now"), storage_class("in-tree", provisioner="kubernetes.io/no-provisioner")],
        [claim("c", storageClassName="now")],
        [claim("d", storageClassName="in-tree")],
        [volume("m1", storageClassName="now", **ref("c"))],
        [volume("m2", storageClassName="in-tree")],
        [gone(CLASSES, "now"), gone(CLASSES, "in-tree")],
    ],
    "first-consumer": [
        [storage_class("later", volumeBindingMode="WaitForFirstConsumer")],
        [volume("n1", storageClassName="later")],
        [claim("c", storageClassName="later")],
        [pod("p", "d"), pod("q", "d"), pod("o", "e")],
        [claim("d", storageClassName="later"), claim("e", storageClassName="later")],
        [
            patched(
                CLAIMS,
                "d",
                metadata={"annotations": {"volume.kubernetes.io/selected-node": "somewhere"}},
            )
        ],
        [volume("n2", storageClassName="later", **ref("c"))],
    ],
    "class-by-default": [
        [claim("c"), claim("d", storageClassName="")],
        [storage_class("usual", meta={"annotations": {DEFAULT: "true"}})],
        [volume("o1")],
        [gone(CLASSES, "usual")],
    ],
    "attributes": [
        [volume("p1", volumeAttributesClassName="fast")],
        [claim("c")],
        [claim("d", volumeAttributesClassName="fast")],
    ],
    "marked": [
        [volume("q1")],
        [claim("c")],
        [gone(VOLUMES, "q1")],
        [claim("d", volumeName="q1")],
        [gone(CLAIMS, "c")],
    ],
    "of-the-pod": [
        [volume("t1"), claim("taken-v", "9Gi")],
        [own_claim("taken"), own_claim("p", labels={"a": "b"}, annotations={"c": "d"})],
        [gone(CLAIMS, "taken-v")],
    ],
    "unlike-when-bound": [
        [volume("r1", **ref("c"))],
        [claim("c", volumeMode="Block")],
        [patched(VOLUMES, "r1", metadata={"labels": {"a": "b"}})],
        [patched(VOLUMES, "r1", metadata={"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}})],
    ],
}


@pytest.mark.parametrize("story", STORIES)
def test_claims_and_volumes_come_to_the_same(both: tuple[Cluster, Cluster], story: str) -> None:
    alike(both, story, STORIES[story], settled)


def alike(
    both: tuple[Cluster, Cluster],
    story: str,
    steps: Sequence[Sequence[Step]],
    settled: Callable[[Cluster, str], list[str]],
) -> None:
    """After each step the clusters come to the same lines, in any order."""
    with ExitStack() as stack:
        for cluster in both:
            make_namespace(cluster.asking, story)
            stack.callback(clear, cluster.asking, story)
        for number, together in enumerate(steps):
            for cluster in both:
                for step in together:
                    sent(cluster.asking, story, step)
            with ThreadPoolExecutor(2) as threads:
                theirs, ours = (set(found) for found in threads.map(lambda one: settled(one, story), both))
            unlike = [f"kubernetes: {line}" for line in theirs - ours]
            unlike += [f"podling: {line}" for line in ours - theirs]
            assert not unlike, "\n".join([f"step {number}", *sorted(unlike)])


def sent(asking: Asking, ns: str, step: Step) -> None:
    body = _placed(step.body, ns)
    headers = {"Content_Type": MERGE_PATCH} if step.method == "PATCH" else {}
    said = asking.ask(step.method, step.target.format(ns), body, **headers)
    assert said.code < 300, said.body


def _placed(value: Any, ns: str) -> Any:
    if isinstance(value, dict):
        return {key: _placed(one, ns) for key, one in value.items()}
    return ns if value == "{ns}" else value


def settled(cluster: Cluster, ns: str) -> list[str]:
    """What has not changed for a while."""
    before, same = None, 0
    for _ in range(LOOKS):
        now = state(cluster.asking, ns)
        same = same + 1 if now == before else 0
        if same == SAME:
            return now
        before = now
        wait(cluster, PAUSE)
    raise AssertionError(f"it does not come to rest: {before}")


def state(asking: Asking, ns: str) -> list[str]:
    items = [
        *asking.ask("GET", CLAIMS.format(ns)).body["items"],
        *(one for one in asking.ask("GET", VOLUMES).body["items"] if one["metadata"]["name"] != "first"),
    ]
    of_uid = {one["metadata"]["uid"]: f"<uid of {one['metadata']['name']}>" for one in items}
    lines = [_plain(one) for one in items]
    for place in (ns, "default"):
        for one in asking.ask("GET", f"/api/v1/namespaces/{place}/events").body["items"]:
            about = one["involvedObject"]
            if about["kind"].startswith(("PersistentVolume", "Pod")) and about["name"] != "first":
                told = f"{one['type']} {one['reason']} {one['message']} by {one['source'].get('component')}"
                lines.append(f"{about['kind']} {about['name']}: {told}")
    return [_masked(line, of_uid) for line in sorted(set(lines))]


def _plain(one: dict[str, Any]) -> str:
    meta = one["metadata"]
    spec = {**one["spec"]}
    if "claimRef" in spec:
        spec["claimRef"] = {key: value for key, value in spec["claimRef"].items() if key != "resourceVersion"}
    kept = {
        "labels": meta.get("labels"),
        "owners": [{**owner, "uid": ""} for owner in meta.get("ownerReferences", ())],
        "annotations": meta.get("annotations"),
        "finalizers": meta.get("finalizers"),
        "deleted": "deletionTimestamp" in meta,
        "spec": _sorted(spec),
        "status": _sorted(one["status"]),
    }
    return f"{meta['name']} {kept}"


def _sorted(value: Any) -> Any:
    return {key: _sorted(value[key]) for key in sorted(value)} if isinstance(value, dict) else value


def _masked(text: str, of_uid: dict[str, str]) -> str:
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "<time>", text)
    # Kubernetes takes the pods from a map, in any order.
    text = re.sub(r"(?<=waiting for pods )\S+", lambda m: ",".join(sorted(m[0].split(","))), text)
    return re.sub(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", lambda m: of_uid.get(m[0], "<uid>"), text)


def clear(asking: Asking, ns: str) -> None:
    """Leave nothing that another story could bind to."""
    for one in asking.ask("GET", CLAIMS.format(ns)).body["items"]:
        asking.ask("DELETE", f"{CLAIMS.format(ns)}/{one['metadata']['name']}")
    for one in asking.ask("GET", VOLUMES).body["items"]:
        name = one["metadata"]["name"]
        if name != "first":
            place = f"{VOLUMES}/{name}"
            asking.ask("DELETE", place)
            asking.ask("PATCH", place, {"metadata": {"finalizers": None}}, Content_Type=MERGE_PATCH)
            asking.ask("DELETE", place)
    asking.ask("DELETE", "/api/v1/namespaces/default/events")


def wait(cluster: Cluster, seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        cluster.controllers.wait(seconds)


def _until_it_is_available(cluster: Cluster) -> None:
    """Until the controllers are at work, which at a start takes a while."""
    for _ in range(LOOKS):
        found = cluster.asking.ask("GET", f"{VOLUMES}/first").body
        if found.get("status", {}).get("phase") == "Available":
            cluster.asking.ask("DELETE", f"{VOLUMES}/first")
            return
        wait(cluster, 0.1)
    raise AssertionError("the controllers do not begin")
