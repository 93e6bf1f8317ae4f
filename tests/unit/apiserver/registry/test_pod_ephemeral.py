"""The ephemeralcontainers subresource: R-EPH-1 and R-EPH-2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podling.apiserver.registry.pod_ephemeral import EphemeralContainers
from podling.model.pod import Pod

MakePod = Callable[..., Pod]

OLD = {"name": "old", "image": "a:1"}
NEW = {"name": "new", "image": "a:1"}
PART = EphemeralContainers()


def faults(new: Pod, old: Pod) -> list[str]:
    PART.prepare_update(new, old)
    return [f"{cause.field}: {cause.message}" for cause in PART.validate_update(new, old)]


def with_ephemeral(make_pod: MakePod, *containers: dict[str, Any], **spec: Any) -> Pod:
    return make_pod(ephemeralContainers=list(containers), **spec)


def test_one_more_is_added(make_pod: MakePod) -> None:
    new, old = with_ephemeral(make_pod, OLD, NEW), with_ephemeral(make_pod, OLD)
    assert faults(new, old) == []
    assert [container.name for container in new.spec.ephemeral_containers] == ["old", "new"]


def test_all_else_in_the_request_is_discarded(make_pod: MakePod) -> None:
    """R-EPH-1"""
    new = with_ephemeral(make_pod, NEW, nodeName="elsewhere", metadata={"labels": {"a": "b"}})
    old = with_ephemeral(make_pod, nodeName="here", status={"phase": "Running"})
    assert faults(new, old) == []
    assert (new.spec.node_name, new.metadata.labels, new.status.phase) == ("here", {}, "Running")


def test_what_is_there_cannot_be_removed(make_pod: MakePod) -> None:
    """R-EPH-2"""
    assert faults(with_ephemeral(make_pod, NEW), with_ephemeral(make_pod, OLD)) == [
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "old" may not be removed\n'
    ]


def test_what_is_there_cannot_be_changed(make_pod: MakePod) -> None:
    """R-EPH-2"""
    changed = with_ephemeral(make_pod, {**OLD, "image": "b:1"})
    assert faults(changed, with_ephemeral(make_pod, OLD)) == [
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "old" may not be changed\n'
        '- old.image: "a:1"\n+ old.image: "b:1"'
    ]


def test_the_whole_pod_is_validated(make_pod: MakePod) -> None:
    """R-EPH-2: a name used anywhere in the pod, a target that is none of its containers."""
    new = with_ephemeral(make_pod, {**NEW, "name": "app"}, {**NEW, "targetContainerName": "nobody"})
    assert faults(new, make_pod()) == [
        'spec.ephemeralContainers[0].name: Duplicate value: "app"',
        'spec.ephemeralContainers[1].targetContainerName: Not found: "nobody"',
    ]


def test_mirror_pods_have_none(make_pod: MakePod) -> None:
    old = make_pod(metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})
    new = with_ephemeral(make_pod, NEW)
    assert faults(new, old) == [": Forbidden: static pods do not support ephemeral containers"]
