"""R-DBG-1: which name is free, and how one entry of the list is told from the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.apiserver.kinds.pods.ephemeral import DebugContainers, OneEphemeralContainer, take_name
from podling.model.errors import StatusError
from podling.model.gates import Gates
from podling.model.types.container import Container, EphemeralContainer
from podling.model.types.pod import Pod, PodDebugContainer

MakePod = Callable[..., Pod]

SHELL = {"name": "shell", "image": "a:1"}


def shown(state: str) -> dict[str, Any]:
    return {"ephemeralContainerStatuses": [{"name": "shell", "state": {state: {}}}]}


@pytest.mark.parametrize(
    ("listed", "status", "outcome", "left"),
    [
        ([], {}, True, ["shell"]),
        ([SHELL], {}, 409, ["shell"]),
        ([SHELL], shown("running"), 409, ["shell"]),
        ([SHELL], shown("waiting"), 409, ["shell"]),
        ([SHELL], shown("terminated"), False, []),
        ([], shown("terminated"), False, []),
        ([], shown("running"), 409, []),
    ],
    ids=["free", "new", "running", "waiting", "exited", "let-go", "being-stopped"],
)
def test_whose_a_name_is(
    make_pod: MakePod, listed: list[Any], status: dict[str, Any], outcome: bool | int, left: list[str]
) -> None:
    pod = make_pod(ephemeralContainers=listed, status=status)
    try:
        said: bool | int = take_name(pod, EphemeralContainer(name="shell"))
    except StatusError as error:
        said = error.code
    assert (said, [container.name for container in pod.spec.ephemeral_containers]) == (outcome, left)


def test_a_container_comes_back_as_it_was_given(make_pod: MakePod) -> None:
    pod = make_pod()
    given = Container(name="shell", image="a:1", command=["sh"], stdin=True, tty=True)
    assert DebugContainers().add(pod, "shell", PodDebugContainer(container=given))
    read = DebugContainers().read(pod, "shell")
    assert (read.metadata.name, read.metadata.namespace) == ("shell", "default")
    assert read.container == given


def test_only_what_is_wrong_with_the_entry_is_told_by_its_own_path(make_pod: MakePod) -> None:
    new = make_pod(ephemeralContainers=[{**SHELL, "name": "other", "ports": [{"containerPort": 1}]}, SHELL])
    new.spec.ephemeral_containers[1].image = ""
    old = make_pod(ephemeralContainers=[])
    causes = OneEphemeralContainer("shell", "container.").validate_update(new, old)
    assert [cause.field for cause in causes] == ["spec.ephemeralContainers[0].ports", "container.image"]


def test_the_rest_of_the_pod_is_judged_under_the_gates_in_force(make_pod: MakePod) -> None:
    """R-DBG-1, R-INIT-6: a pod that a gate let in can be debugged under that gate."""
    probe = {"exec": {"command": ["true"]}}
    first = [{"name": "first", "image": "a:1", "livenessProbe": probe}]
    new = make_pod(ephemeralContainers=[SHELL], initContainers=first)
    old = make_pod(ephemeralContainers=[], initContainers=first)

    def faults(gates: Gates) -> list[str]:
        rules = DebugContainers(gates).rules("shell")
        return [cause.field for cause in rules.validate_update(new, old)]

    assert faults(Gates({"InitContainerLivenessProbe": True})) == []
    assert faults(Gates()) == ["spec.initContainers[0].livenessProbe"]
