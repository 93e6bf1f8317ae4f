"""What is alpha in Kubernetes v1.36 is known, and as if it had not been said where its gate is off."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from podling.apiserver.kinds.pods.pods import Pods, PodTemplates
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.types.pod import Pod, PodTemplate, PodTemplateSpec

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ON = Gates({"ContainerStopSignals": True})
PRE_STOP = {"preStop": {"sleep": {"seconds": 1}}}
MakePod = Callable[..., Pod]


def stopped_with(make_pod: MakePod, **lifecycle: Any) -> Pod:
    container = {"name": "app", "image": "a", "lifecycle": {"stopSignal": "SIGUSR1", **lifecycle}}
    return make_pod(
        containers=[container], initContainers=[{**container, "name": "i", "restartPolicy": "Always"}]
    )


def signals(pod: Pod) -> list[str | None]:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return [container.lifecycle.stop_signal if container.lifecycle else "-" for container in containers]


def test_no_pod_is_put_into_a_group(make_pod: MakePod) -> None:
    new, old = (make_pod(schedulingGroup={"podGroupName": "g"}) for _ in range(2))
    Pods().prepare_update(new, old)
    assert new.spec.scheduling_group is not None
    Pods().prepare_update(new, make_pod())
    assert new.spec.scheduling_group is None
    Pods().prepare_create(old, NOW)
    assert old.spec.scheduling_group is None


@pytest.mark.parametrize(
    ("gates", "lifecycle", "kept"),
    [(DEFAULT_GATES, {}, "-"), (DEFAULT_GATES, PRE_STOP, None), (ON, {}, "SIGUSR1")],
)
def test_a_stop_signal_needs_its_gate(
    make_pod: MakePod, gates: Gates, lifecycle: Any, kept: str | None
) -> None:
    pod = stopped_with(make_pod, **lifecycle)
    Pods(gates).prepare_create(pod, NOW)
    assert signals(pod) == [kept, kept]
    template = PodTemplate(template=PodTemplateSpec(spec=stopped_with(make_pod, **lifecycle).spec))
    PodTemplates(gates).prepare_create(template, NOW)
    assert signals(Pod(spec=template.template.spec)) == [kept, kept]


def test_a_pod_that_has_a_stop_signal_keeps_it(make_pod: MakePod) -> None:
    new, old = stopped_with(make_pod), stopped_with(make_pod)
    Pods().prepare_update(new, old)
    assert signals(new) == ["SIGUSR1", "SIGUSR1"]
    Pods().prepare_update(new, make_pod())
    assert signals(new) == ["-", "-"]
