"""The graph of what nodes need: it follows every change, and is as large as what is there."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.authz.authorizers import ALLOW, Opinion
from podling.apiserver.authz.node import NodeAuthorizer, NodeGraph
from podling.apiserver.request.request import RequestInfo, Selecting, User
from podling.model.codec.json import from_data
from podling.model.types.persistent_volume import PersistentVolume
from podling.model.types.pod import Pod
from podling.model.types.resource import ResourceSlice
from podling.model.types.storage import VolumeAttachment

NODES, NAMES = ("n1", "n2", ""), ("a", "b", "c")
N1 = User("system:node:n1", ("system:nodes",))


def a_pod(name: str, node: str, secrets: list[str], claims: list[str], mirror: bool) -> Pod:
    annotations = {"kubernetes.io/config.mirror": "x"} if mirror else {}
    volumes: list[Any] = [{"name": f"s-{one}", "secret": {"secretName": one}} for one in secrets]
    volumes += [{"name": f"c-{one}", "persistentVolumeClaim": {"claimName": one}} for one in claims]
    spec = {"nodeName": node, "containers": [], "volumes": volumes, "serviceAccountName": "default"}
    meta = {"name": name, "namespace": "ns", "annotations": annotations}
    return from_data({"metadata": meta, "spec": spec}, Pod)


def a_volume(name: str, claim: str, secrets: list[str]) -> PersistentVolume:
    reference = {"claimRef": {"namespace": "ns", "name": claim}} if claim else {}
    steps = ("nodeStage", "nodePublish", "nodeExpand", "controllerPublish")
    named = {
        f"{step}SecretRef": {"name": one, "namespace": "ns"}
        for step, one in zip(steps, secrets, strict=False)
    }
    csi = {"driver": "d", "volumeHandle": "h", **named}
    return from_data({"metadata": {"name": name}, "spec": {**reference, "csi": csi}}, PersistentVolume)


names = st.sampled_from(NAMES)
several = st.lists(names, max_size=2)
pods = st.builds(a_pod, names, st.sampled_from(NODES), several, several, st.booleans())
volumes = st.builds(a_volume, names, st.sampled_from((*NAMES, "")), st.lists(names, max_size=4))
attachments = st.builds(
    lambda name, node: from_data({"metadata": {"name": name}, "spec": {"nodeName": node}}, VolumeAttachment),
    names,
    st.sampled_from(NODES),
)
slices = st.builds(
    lambda name, node: from_data({"metadata": {"name": name}, "spec": {"nodeName": node}}, ResourceSlice),
    names,
    st.sampled_from(NODES),
)
changes = st.tuples(st.one_of(pods, volumes, attachments, slices), st.booleans())


@given(st.lists(changes, max_size=30))
def test_after_any_history_the_graph_is_as_one_built_new(history: list[tuple[Any, bool]]) -> None:
    graph = NodeGraph()
    standing: dict[tuple[type[Any], tuple[str, str]], Any] = {}
    for obj, goes in history:
        key = (obj.metadata.namespace, obj.metadata.name)
        graph.changed(key, None if goes else obj, type(obj))
        standing.pop((type(obj), key), None)
        if not goes:
            standing[type(obj), key] = obj
    new = NodeGraph()
    for (type_, key), obj in standing.items():
        new.changed(key, obj, type_)
    assert graph == new
    for type_, key in list(standing):
        graph.changed(key, None, type_)
    assert graph == NodeGraph(), "nothing is kept of what is gone"


def opinion(graph: NodeGraph, resource: str, name: str, namespace: str = "ns", **more: Any) -> Opinion:
    info = RequestInfo("get", "", True, "", "v1", namespace, resource, "", name)._replace(**more)
    return NodeAuthorizer(graph).authorize(N1, info)


def test_a_node_reads_what_its_pods_refer_to_for_as_long_as_one_does() -> None:
    graph = NodeGraph()
    for name in ("p", "q"):
        graph.changed(("ns", name), a_pod(name, "n1", ["s"], ["c"], False), Pod)
    graph.changed(("", "v"), a_volume("v", "c", ["of-volume"]), PersistentVolume)
    wanted = (("secrets", "s", "ns"), ("secrets", "of-volume", "ns"), ("persistentvolumes", "v", ""))
    for after in ("p", "q"):
        assert all(opinion(graph, *one) is ALLOW for one in wanted)
        graph.changed(("ns", after), None, Pod)
    why = "no relationship found between node 'n1' and this object"
    assert {opinion(graph, *one).reason for one in wanted} == {why}


def test_a_mirror_pod_gives_no_right_to_what_it_names() -> None:
    graph = NodeGraph()
    graph.changed(("ns", "p"), a_pod("p", "n1", ["s"], [], True), Pod)
    assert opinion(graph, "pods", "p") is ALLOW
    assert opinion(graph, "secrets", "s") is not ALLOW


def test_pods_are_listed_by_node_only() -> None:
    graph = NodeGraph()
    listed: dict[str, Any] = {"verb": "list", "namespace": ""}
    assert opinion(graph, "pods", "", fields=(Selecting("spec.nodeName", "In", ("n1",)),), **listed) is ALLOW
    for fields in ((), (Selecting("spec.nodeName", "In", ("n2",)),)):
        said = opinion(graph, "pods", "", fields=fields, **listed)
        assert said.reason == "can only list/watch pods with spec.nodeName field selector"


def test_the_graph_is_as_large_as_the_references() -> None:
    graph, sizes = NodeGraph(), []
    for i in range(200):
        graph.changed(("ns", f"p{i}"), a_pod(f"p{i}", "n1", [f"s{i}", "shared"], [], False), Pod)
        sizes.append(len(graph))
    # Of each further pod: itself and its secret.
    assert sizes[199] - sizes[99] == 2 * 100
