"""The ephemeralcontainers subresource: R-EPH-1, R-EPH-2, and R-EPH-8 with its gate off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.kinds.kind import Connect
from podling.apiserver.kinds.kinds import kinds
from podling.apiserver.kinds.pods.ephemeral import EphemeralContainers
from podling.apiserver.kinds.pods.pods import Pods
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

MakePod = Callable[..., Pod]

OLD = {"name": "old", "image": "a:1"}
NEW = {"name": "new", "image": "a:1"}
PART = EphemeralContainers()


REMOVING = EphemeralContainers(removal=True)


def faults(new: Pod, old: Pod, part: EphemeralContainers = PART) -> list[str]:
    part.prepare_update(new, old)
    return [f"{cause.field}: {cause.message}" for cause in part.validate_update(new, old)]


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


def test_what_is_there_can_be_removed_where_the_gate_allows_it(make_pod: MakePod) -> None:
    """R-EPH-11: removed, but still not changed."""
    old = with_ephemeral(make_pod, OLD)
    assert faults(with_ephemeral(make_pod, NEW), old, REMOVING) == []
    (fault,) = faults(with_ephemeral(make_pod, {**OLD, "image": "b:1"}), old, REMOVING)
    assert 'existing ephemeral containers "old" may not be changed' in fault


@pytest.mark.parametrize("state", ["running", "terminated", "waiting"])
def test_the_name_of_a_removed_one_is_taken_while_its_status_is_there(make_pod: MakePod, state: str) -> None:
    """R-EPH-11"""
    shown = {"ephemeralContainerStatuses": [{"name": "old", "state": {state: {}}}]}
    assert faults(with_ephemeral(make_pod, NEW, OLD), with_ephemeral(make_pod, status=shown), REMOVING) == [
        "spec.ephemeralContainers[1].name: Forbidden: may not be used again while it is in "
        "`status.ephemeralContainerStatuses`"
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
    assert faults(new, old) == ["[]: Forbidden: static pods do not support ephemeral containers"]


PODS = "/api/v1/namespaces/default/pods"
OFF = Gates({"EphemeralContainers": False})
APP = {"name": "app", "image": "a:1"}


async def test_gate_off_there_is_no_subresource_and_new_uses_are_dropped(api: Conversation) -> None:
    """R-EPH-8"""
    await api.restart(kinds(OFF))
    body = {"metadata": {"name": "p"}, "spec": {"containers": [APP], "ephemeralContainers": [NEW]}}
    made = await api.post(PODS, body)
    assert (made.status, "ephemeralContainers" in made.body["spec"]) == (201, False)
    updated = await api.put(
        f"{PODS}/p", {**made.body, "spec": {**made.body["spec"], "ephemeralContainers": [NEW]}}
    )
    assert (updated.status, "ephemeralContainers" in updated.body["spec"]) == (200, False)
    for answer in (
        await api.get(f"{PODS}/p/ephemeralcontainers"),
        await api.put(f"{PODS}/p/ephemeralcontainers", made.body),
        await api.patch(f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [NEW]}}),
    ):
        assert answer.status == 404


def test_gate_off_there_is_no_front_either() -> None:
    """R-EPH-8: whatever other gates say."""
    fronts = {"DebugSubresource": True, "ExecEphemeralContainer": True}
    off = Pods(Gates({**fronts, "EphemeralContainers": False})).subresources
    on = Pods(Gates(fronts)).subresources
    assert ("debug" in off, "debug" in on) == (False, True)
    closed, opened = off["exec"], on["exec"]
    assert isinstance(closed, Connect) and isinstance(opened, Connect)
    assert closed.container_rules is None and opened.container_rules


async def test_stored_ephemeral_containers_survive_the_gate_off_and_on(api: Conversation) -> None:
    """R-EPH-8"""
    await api.post(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [APP]}})
    added = await api.patch(f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [OLD]}})
    stored = added.body["spec"]["ephemeralContainers"]
    await api.restart(kinds(OFF))
    labelled = await api.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})
    assert (labelled.status, labelled.body["spec"]["ephemeralContainers"]) == (200, stored)
    replaced = await api.put(f"{PODS}/p", labelled.body)
    assert replaced.body["spec"]["ephemeralContainers"] == stored
    more = await api.patch(f"{PODS}/p", {"spec": {"ephemeralContainers": [OLD, NEW]}})
    assert more.status == 422
    await api.restart(kinds(DEFAULT_GATES))
    again = await api.patch(
        f"{PODS}/p/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [NEW]}},
        kind="strategic-merge-patch",
    )
    assert [one["name"] for one in again.body["spec"]["ephemeralContainers"]] == ["new", "old"]


async def test_of_many_that_take_one_name_at_once_one_gets_it(api: Conversation) -> None:
    """R-EPH-2, R-EPH-11: additions and removals, all at the same time."""
    await api.restart(kinds(Gates({"EphemeralContainerRemoval": True})))
    await api.post(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [APP]}})

    async def add(image: str) -> int:
        body = [{"op": "add", "path": "/spec/ephemeralContainers", "value": [{**NEW, "image": image}]}]
        answer: int = (await api.patch(f"{PODS}/p/ephemeralcontainers", body, kind="json-patch")).status
        return answer

    async with asyncio.TaskGroup() as tasks:
        adding = [tasks.create_task(add(f"a:{n}")) for n in range(8)]
    assert sorted(task.result() for task in adding) == [200] + [422] * 7
    removed = await api.patch(f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": None}})
    assert (removed.status, removed.body["metadata"]["generation"]) == (200, 3)
