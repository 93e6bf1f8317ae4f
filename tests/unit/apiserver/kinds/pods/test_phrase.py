"""The STATUS column tells how far initialization is (R-INIT-3), ephemeral containers or not (R-CLI-4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from podling.apiserver.kinds.pods.table import COLUMNS, pod_row, summarize
from podling.model.codec.json import from_data
from podling.model.types.pod import Pod

NOW = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
WAITS = {"waiting": {"reason": "PodInitializing"}}
RUNS = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}
CRASHED = {"waiting": {"reason": "CrashLoopBackOff"}}
READY = [{"type": "Ready", "status": "True"}]


def ended(code: int, reason: str = "", signal: int = 0) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "signal": signal}}


def pod(
    init: Sequence[Any] = (),
    app: Sequence[Any] = (),
    phase: str = "Running",
    sidecars: int = 0,
    deleted: bool = False,
    **status: Any,
) -> Pod:
    """`init` and `app` are states, in order; the first `sidecars` init containers are sidecars."""
    inits = [
        {"name": f"i{n}", **({"restartPolicy": "Always"} if n < sidecars else {})} for n in range(len(init))
    ]
    ending = {"deletionTimestamp": "2026-01-01T00:09:00Z"} if deleted else {}
    data = {
        "metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z", **ending},
        "spec": {"initContainers": inits, "containers": [{"name": f"a{n}"} for n in range(len(app))]},
        "status": {
            "phase": phase,
            "initContainerStatuses": statuses("i", init),
            "containerStatuses": statuses("a", app),
            **status,
        },
    }
    return from_data(data, Pod)


def statuses(letter: str, states: Sequence[Any]) -> list[Any]:
    running = [state is RUNS for state in states]
    return [
        {"name": f"{letter}{n}", "state": state, "ready": running[n], "started": running[n]}
        for n, state in enumerate(states)
    ]


@pytest.mark.parametrize(
    ("given", "phrase", "ready"),
    [
        (pod(app=[WAITS], phase="Pending"), "PodInitializing", "0/1"),
        (pod(phase="Pending"), "Pending", "0/0"),
        (pod([RUNS, WAITS], [WAITS], "Pending"), "Init:0/2", "0/1"),
        (pod([DONE, RUNS], [WAITS], "Pending"), "Init:1/2", "0/1"),
        (pod([{}, {}], [WAITS], "Pending"), "Init:0/2", "0/1"),
        (pod([ended(1, "Error")], [WAITS], "Pending"), "Init:Error", "0/1"),
        (pod([ended(1)], [WAITS], "Pending"), "Init:ExitCode:1", "0/1"),
        (pod([ended(137, signal=9)], [WAITS], "Pending"), "Init:Signal:9", "0/1"),
        (pod([CRASHED], [WAITS], "Pending"), "Init:CrashLoopBackOff", "0/1"),
        (pod([{"waiting": {"reason": "ErrImagePull"}}], [WAITS], "Pending"), "Init:ErrImagePull", "0/1"),
        (pod([DONE, DONE], [WAITS], "Pending"), "PodInitializing", "0/1"),
        (pod([DONE], [RUNS]), "Running", "1/1"),
        (pod([RUNS], [RUNS], conditions=[{"type": "Initialized", "status": "True"}]), "Init:0/1", "1/1"),
        (pod([RUNS], [WAITS], "Pending", sidecars=1), "PodInitializing", "1/2"),
        (pod([RUNS], [RUNS], sidecars=1), "Running", "2/2"),
        (pod([RUNS, WAITS], [WAITS], "Pending", sidecars=1), "Init:1/2", "1/2"),
        (pod(app=[CRASHED]), "CrashLoopBackOff", "0/1"),
        (pod(app=[ended(2)]), "ExitCode:2", "0/1"),
        (pod(app=[DONE], phase="Succeeded"), "Completed", "0/1"),
        (pod(app=[DONE, RUNS], conditions=READY), "Running", "1/2"),
        (pod(app=[DONE, RUNS]), "NotReady", "1/2"),
        (pod(phase="Failed", reason="Evicted"), "Evicted", "0/0"),
        (pod(app=[RUNS], deleted=True), "Terminating", "1/1"),
        (pod(app=[DONE], phase="Succeeded", deleted=True), "Completed", "0/1"),
        (pod(app=[RUNS], deleted=True, reason="NodeLost"), "Unknown", "1/1"),
        (
            pod(
                phase="Pending",
                conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            ),
            "SchedulingGated",
            "0/0",
        ),
        (pod(app=[RUNS], ephemeralContainerStatuses=statuses("e", [CRASHED])), "Running", "1/1"),
    ],
)
def test_phrase_and_ready(given: Pod, phrase: str, ready: str) -> None:
    summary = summarize(given)
    assert (summary.phrase, f"{summary.ready}/{summary.total}") == (phrase, ready)


def with_restarts(given: Pod, *counts: int, ended_at: str | None = "2026-01-01T00:05:00Z") -> Pod:
    for status, count in zip(
        [*given.status.init_container_statuses, *given.status.container_statuses], counts, strict=True
    ):
        status.restart_count = count
        if count:
            last = from_data({"terminated": {"exitCode": 1, "finishedAt": ended_at}}, type(status.state))
            status.last_state = last
    return given


@pytest.mark.parametrize(
    ("given", "restarts"),
    [
        (pod(app=[RUNS]), "0"),
        (with_restarts(pod(app=[RUNS, RUNS]), 3, 1), "4 (5m ago)"),
        (with_restarts(pod(app=[RUNS]), 3, ended_at=None), "3"),
        (with_restarts(pod([CRASHED], [WAITS], "Pending"), 2, 0), "2 (5m ago)"),
        (with_restarts(pod([DONE], [RUNS]), 2, 0), "0"),
        (with_restarts(pod([RUNS], [RUNS], sidecars=1), 2, 1), "3 (5m ago)"),
    ],
)
def test_restarts_of_init_containers_count_only_until_they_are_done(given: Pod, restarts: str) -> None:
    assert summarize(given).restarts(NOW) == restarts


def test_a_row_has_a_cell_for_every_column() -> None:
    cells = pod_row(pod(app=[RUNS], podIP="10.0.0.7"), NOW)
    assert len(cells) == len(COLUMNS)
    assert cells == ["p", "1/1", "Running", "0", "10m", "10.0.0.7", "<none>", "<none>", "<none>"]
