"""RestartAllContainers: what ends a round, and what the next waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from podling.kubelet.plan.plan import plan
from podling.kubelet.plan.restart import in_round
from podling.kubelet.pod.observed import ObservedPod
from podling.kubelet.status.pod_status import pod_status
from podling.model.types.container import ContainerRestartRule, ContainerRestartRuleOnExitCodes
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

STEPS = [
    # shape        seen; `+`: made in the second round   planned
    ("i / a b",    "i=exit0 a=exit42 b=run",             "stop b-0(0)"),
    ("s* i / a b", "s=run i=exit0 a=exit42 b=exit1",     "stop s-0(0)"),
    ("i / a b",    "i=exit0 a=exit42 b=exit1",           "start i#1"),
    ("i / a b",    "i=exit0 a=exit42 b=exit1 i=run+",    ""),
    ("i / a",      "i=exit0 a=exit42 i=exit0+",          "initialized, start a#1~1, remove i-0"),
    ("a b",        "a=exit42 b=exit0",                   "start a#1~1, start b#1"),
    ("/ a / e",    "a=exit42 e=run",                     "start a#1~1"),
    ("a b",        "a=exit1 b=run",                      ""),
    ("a b",        "a=exit42 b=exit1 a=exit42+ b=run+",  "stop b-1(0)"),
]  # fmt: skip


def seen_of(scene: type[Scene], pod: Pod, text: str) -> ObservedPod:
    words = text.split()
    observed = scene.observed(pod, " ".join(word.rstrip("+") for word in words))
    ender = next((c.id for c in reversed(observed.containers) if c.name == "a"), "")
    made = [
        replace(container, round=ender) if word.endswith("+") else container
        for container, word in zip(reversed(observed.containers), words, strict=True)
    ]
    return replace(observed, containers=tuple(reversed(made)))


def with_rule(scene: type[Scene], shape: str) -> Pod:
    pod = scene.pod(shape, "Never")
    codes = ContainerRestartRuleOnExitCodes(operator="In", values=[42])
    rule = ContainerRestartRule(action="RestartAllContainers", exit_codes=codes)
    pod.spec.containers[0].restart_policy_rules = [rule]
    return pod


@pytest.mark.parametrize(("shape", "seen", "planned"), STEPS)
def test_all_end_then_all_begin(scene: type[Scene], shape: str, seen: str, planned: str) -> None:
    pod = with_rule(scene, shape)
    assert scene.say(plan(pod, seen_of(scene, pod, seen), scene.NOW)) == planned


def test_nothing_new_begins_beside_what_was_being_started(scene: type[Scene]) -> None:
    pod = with_rule(scene, "i / a b")
    observed = seen_of(scene, pod, "i=exit0 a=exit42")
    observed = replace(observed, in_flight=scene.in_flight("start:b"))
    assert scene.say(plan(pod, observed, scene.NOW)) == ""


def test_the_round_is_kept_when_its_ender_is_gone(scene: type[Scene]) -> None:
    pod = with_rule(scene, "a b")
    observed = seen_of(scene, pod, "a=exit42 b=exit1 a=run+ b=run+")
    (ender,) = {c.round for c in observed.containers} - {""}
    gone = replace(observed, containers=tuple(c for c in observed.containers if c.id != ender))
    assert in_round(pod, gone).round == ender
    assert scene.say(plan(pod, gone, scene.NOW)) == ""


def test_how_it_shows(scene: type[Scene]) -> None:
    pod = with_rule(scene, "i / a b")

    def restarting(seen: str) -> list[tuple[str, str, str]]:
        pod.status = pod_status(pod, seen_of(scene, pod, seen), scene.NOW)
        return [
            (c.status, c.reason, c.message)
            for c in pod.status.conditions
            if c.type == "AllContainersRestarting"
        ]

    assert restarting("i=exit0 a=run b=run") == []
    message = "Container a exited with code 42, triggering pod restart"
    assert restarting("i=exit0 a=exit42 b=run") == [("True", "ContainerExited", message)]
    assert restarting("i=exit0 a=exit42 b=exit1 i=run+") == [("False", "", "")]
    assert pod.status.phase in ("Pending", "Running")
    assert restarting("i=exit0 a=exit42 b=exit1 i=exit0+ a=run+ b=run+") == [("False", "", "")]
    assert pod.status.phase == "Running"
    assert [s.restart_count for s in pod.status.container_statuses] == [1, 1]
