"""What the API server refuses of a status does not keep it from the rest."""

from __future__ import annotations

from typing import Any

import pytest

from podling.kubelet.status.writer import status_patch, without_refused
from podling.model.errors import Cause
from podling.model.types.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    PodIP,
    PodStatus,
)

ENDED = ContainerState(terminated=ContainerStateTerminated(exit_code=0))
RUNS = ContainerState(running=ContainerStateRunning())


def status(phase: str = "", ip: str = "", **states: ContainerState) -> PodStatus:
    shown = [ContainerStatus(name=name, state=state) for name, state in states.items()]
    ips = [PodIP(ip=ip)] if ip else []
    return PodStatus(phase=phase, ephemeral_container_statuses=shown, pod_ips=ips)


def left(old: PodStatus, new: PodStatus, *fields: str, whole: bool = False) -> dict[str, Any] | None:
    patch = status_patch(old, new, "u")
    assert patch
    causes = [Cause("FieldValueForbidden", "no", field) for field in fields]
    rest = without_refused(patch, old, causes, whole=whole)
    return rest["status"] if rest else None


STATE = "status.ephemeralContainerStatuses[0].state"


def names(rest: dict[str, Any] | None) -> dict[str, list[str]]:
    assert rest
    return {one["name"]: list(one["state"]) for one in rest["ephemeralContainerStatuses"]}


def test_one_container_stays_as_it_is_and_the_others_go_on() -> None:
    rest = left(status(a=ENDED, b=RUNS), status("Running", b=ENDED, a=RUNS), STATE)
    assert rest
    # The path counts in either list: both containers it may mean stay.
    assert rest == {"phase": "Running", "ephemeralContainerStatuses": rest["ephemeralContainerStatuses"]}
    assert names(rest) == {"b": ["running"], "a": ["terminated"]}
    rest = left(status(a=ENDED, b=RUNS), status(a=RUNS, b=ENDED), STATE)
    assert names(rest) == {"a": ["terminated"], "b": ["terminated"]}


def test_a_container_the_server_does_not_have_is_left_out() -> None:
    rest = left(status(), status("Running", a=RUNS), "status.ephemeralContainerStatuses[0].linux.uid")
    assert rest == {"phase": "Running"}


def test_a_field_goes_whole() -> None:
    assert left(status(a=ENDED), status("Running", a=RUNS, b=RUNS), STATE, whole=True) == {"phase": "Running"}
    assert left(status(), status("Running", ip="x"), "status.podIPs[0]") == {"phase": "Running"}


@pytest.mark.parametrize("field", [STATE, "status.phase", "metadata.annotations", ""])
def test_nothing_is_left_of_what_was_all_refused(field: str) -> None:
    old, new = (status("Running"), status("Failed")) if field != STATE else (status(a=ENDED), status(a=RUNS))
    assert left(old, new, field) is None
