"""From a pod's subresource to the kubelet's path."""

from __future__ import annotations

import pytest

from podling.apiserver.connect.kubelets import chosen_container, kubelet_address, kubelet_target
from podling.apiserver.request.request import parse_query
from podling.model.errors import StatusError
from podling.model.types.container import Container, EphemeralContainer
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import DaemonEndpoint, Node, NodeAddress, NodeDaemonEndpoints, NodeStatus
from podling.model.types.pod import Pod, PodSpec


def pod(*containers: str, init: tuple[str, ...] = ()) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p", namespace="ns"),
        spec=PodSpec(
            init_containers=[Container(name=name) for name in init],
            containers=[Container(name=name) for name in containers],
            ephemeral_containers=[EphemeralContainer(name="debug")],
        ),
    )


@pytest.mark.parametrize(
    ("subresource", "query", "target"),
    [
        ("log", "", "/containerLogs/ns/p/c"),
        (
            "log",
            "follow=true&tailLines=5&timestamps",
            "/containerLogs/ns/p/c?follow=true&timestamps=true&tailLines=5",
        ),
        ("log", "previous=0&limitBytes=1", "/containerLogs/ns/p/c?limitBytes=1"),
        ("log", "sinceTime=2026-01-02T03:04:05Z", "/containerLogs/ns/p/c?sinceTime=2026-01-02T03%3A04%3A05Z"),
        ("exec", "command=ls&command=-l+%2F&stdout=true", "/exec/ns/p/c?output=1&command=ls&command=-l+%2F"),
        ("exec", "stdin=1&stdout=1&stderr=1&tty=true", "/exec/ns/p/c?input=1&output=1&error=1&tty=1"),
        ("attach", "container=debug&stdin=true", "/attach/ns/p/debug?input=1"),
        ("attach", "stdout=true&replay=true", "/attach/ns/p/c?output=1&replay=1"),
        ("attach", "exitCode=true&replay=true", "/attach/ns/p/c?replay=1&exitCode=1"),
        ("portforward", "ports=80&ports=443", "/portForward/ns/p?port=80&port=443"),
        ("portforward", "", "/portForward/ns/p"),
    ],
)
def test_targets(subresource: str, query: str, target: str) -> None:
    assert kubelet_target(pod("c"), subresource, parse_query(query)) == target


@pytest.mark.parametrize(
    ("asked_of", "name", "why"),
    [
        (
            pod("a", "b", init=("i", "j")),
            "",
            "a container name must be specified for pod p, choose one of: [i j a b debug]",
        ),
        (pod("a"), "x", "container x is not valid for pod p"),
    ],
)
def test_a_container_that_cannot_be_told_is_a_bad_request(asked_of: Pod, name: str, why: str) -> None:
    with pytest.raises(StatusError) as error:
        chosen_container(asked_of, name)
    assert (error.value.code, error.value.message) == (400, why)


def test_containers_of_every_kind_can_be_chosen() -> None:
    """R-INIT-8, R-EPH-6."""
    asked_of = pod("a", "b", init=("i",))
    assert [chosen_container(asked_of, name) for name in ("a", "i", "debug")] == ["a", "i", "debug"]


@pytest.mark.parametrize(
    ("query", "code", "why"),
    [
        ("tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        (
            "tailLines=-1",
            422,
            'PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
        ),
        (
            "limitBytes=0",
            422,
            'PodLogOptions "p" is invalid: limitBytes: Invalid value: 0: must be greater than 0',
        ),
        (
            "sinceSeconds=5&sinceTime=2026-01-02T03:04:05Z",
            422,
            "at most one of `sinceTime` or `sinceSeconds`",
        ),
        ("sinceTime=2026-01-02", 400, 'cannot parse "" as "T"'),
        ("tailLines=", 400, 'strconv.ParseInt: parsing "": invalid syntax'),
        ("stream=Stdout", 422, "stream: Forbidden: may not be specified"),
    ],
)
def test_log_options_that_cannot_be(query: str, code: int, why: str) -> None:
    with pytest.raises(StatusError) as error:
        kubelet_target(pod("c"), "log", parse_query(query))
    assert error.value.code == code
    assert why in error.value.message


def node(*addresses: tuple[str, str], port: int = 10250) -> Node:
    endpoints = NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=port))
    known = [NodeAddress(type=kind, address=address) for kind, address in addresses]
    return Node(status=NodeStatus(addresses=known, daemon_endpoints=endpoints))


def test_a_node_is_reached_at_its_internal_address() -> None:
    assert kubelet_address(node(("Hostname", "h"), ("InternalIP", "10.0.0.1"))) == ("10.0.0.1", 10250)
    assert kubelet_address(node(("Hostname", "h"))) == ("h", 10250)


@pytest.mark.parametrize("lost", [node(), node(("InternalIP", "10.0.0.1"), port=0)])
def test_a_node_that_has_not_said_where_it_is_cannot_be_asked(lost: Node) -> None:
    with pytest.raises(StatusError, match="no preferred addresses found"):
        kubelet_address(lost)
