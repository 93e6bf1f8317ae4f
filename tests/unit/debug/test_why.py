"""Why a pod is not ready: the step it stands at, in one sentence, and its time line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from podling.debug.sessions import MOST_MANAGER, attachable, manager, sessions
from podling.debug.why import Mark, Step, time_line, told, why
from podling.model.codec import json
from podling.model.types.core import Event
from podling.model.types.pod import Pod

NOW = datetime(2026, 1, 1, 0, 2, tzinfo=UTC)
SCHEDULED = {
    "type": "PodScheduled",
    "status": "True",
    "lastTransitionTime": "2026-01-01T00:00:01Z",
}


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"


def pod(*, phase: str = "Pending", node: str = "n1", init: Any = (), **status: Any) -> Pod:
    steps = [
        {"name": "first", "image": "i"},
        {"name": "proxy", "image": "i", "restartPolicy": "Always"},
    ]
    return json.from_data(
        {
            "metadata": {
                "name": "web",
                "namespace": "ns",
                "creationTimestamp": at(0),
                **status.pop("metadata", {}),
            },
            "spec": {
                "nodeName": node,
                "initContainers": steps,
                "containers": [{"name": "app", "image": "i", **status.pop("app", {})}],
                **status.pop("spec", {}),
            },
            "status": {
                "phase": phase,
                "conditions": [SCHEDULED],
                "initContainerStatuses": list(init),
                **status,
            },
        },
        Pod,
    )


def one(name: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "restartCount": 0, "ready": False, "image": "i", **more}


def ended(code: int, **more: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "startedAt": at(2), "finishedAt": at(12), **more}}


DONE = one("first", ended(0))
UP = one("proxy", {"running": {"startedAt": at(12)}}, started=True, ready=True)
FAILED = {"containerID": "c://x", "lastState": ended(1, reason="Error"), "restartCount": 3}
BACKOFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}}


@pytest.mark.parametrize(
    ("found", "verdict", "log_of"),
    [
        (
            pod(node="", conditions=[{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}]),
            "web stands at schedule: 0/1 nodes",
            None,
        ),
        (pod(node="", conditions=[]), "web stands at schedule: nobody has looked for a node yet", None),
        (
            pod(init=[one("first", BACKOFF, **FAILED)]),
            "web stands at init first: ended with exit code 1; CrashLoopBackOff, restarted 3 times",
            ("first", True),
        ),
        (
            pod(init=[one("first", {"waiting": {"reason": "ErrImagePull", "message": "no such image"}})]),
            "web stands at init first: ErrImagePull: no such image",
            None,
        ),
        (
            pod(init=[one("first", {"running": {"startedAt": at(2)}}, containerID="c://x")]),
            "web stands at init first: runs",
            ("first", False),
        ),
        (
            pod(init=[one("first", {"waiting": {"reason": "ContainerCreating"}})]),
            "web stands at init first: being created",
            None,
        ),
        (
            pod(init=[DONE, one("proxy", {"running": {"startedAt": at(12)}}, containerID="c://x")]),
            "web stands at sidecar proxy: runs, and its readiness probe has not succeeded",
            ("proxy", False),
        ),
        (
            pod(
                init=[DONE, UP],
                containerStatuses=[one("app", ended(137, reason="OOMKilled", signal=9), containerID="c://x")],
            ),
            "web stands at app: ended with signal 9 (OOMKilled)",
            ("app", False),
        ),
        (
            pod(
                init=[DONE, UP],
                app={"startupProbe": {"tcpSocket": {"port": 1}}},
                containerStatuses=[
                    one("app", {"running": {"startedAt": at(13)}}, started=False, containerID="c://x")
                ],
            ),
            "web stands at app: runs, and its startup probe has not succeeded",
            ("app", False),
        ),
        (
            pod(
                init=[DONE, UP],
                containerStatuses=[one("app", {"running": {"startedAt": at(13)}}, ready=True)],
                spec={"readinessGates": [{"conditionType": "lb"}]},
            ),
            "web waits for its readiness gates: lb",
            None,
        ),
        (
            pod(
                phase="Running",
                init=[DONE, UP],
                containerStatuses=[one("app", {"running": {"startedAt": at(13)}}, ready=True)],
            ),
            "web is ready",
            None,
        ),
        (pod(phase="Succeeded"), "web has finished", None),
        (pod(metadata={"deletionTimestamp": at(5)}), "web is being deleted", None),
    ],
)
def test_the_step_a_pod_stands_at(found: Pod, verdict: str, log_of: tuple[str, bool] | None) -> None:
    told = why(found)
    assert (told.verdict, told.log_of) == (verdict, log_of)
    assert told.is_ready is (verdict == "web is ready")


def test_steps_are_in_the_order_they_run() -> None:
    found = why(pod(init=[DONE, UP]))
    assert [(step.name, step.mark) for step in found.steps] == [
        ("schedule", Mark.DONE),
        ("init first", Mark.DONE),
        ("sidecar proxy", Mark.DONE),
        ("app", Mark.LATER),
    ]


def test_a_time_line_has_each_step_where_it_was() -> None:
    steps = [
        Step("schedule", Mark.DONE, "n1", at(0), at(60)),
        Step("init x", Mark.NOW, "runs", at(60)),
        Step("app", Mark.LATER, "not yet"),
    ]
    assert time_line(steps, NOW, 10) == [
        "✓ schedule  █████          60s  n1",
        "… init x        █████      60s  runs",
        "· app                           not yet",
    ]


def test_events_are_told_from_old_to_new() -> None:
    events = [
        json.from_data({"reason": "B", "message": "b\n", "lastTimestamp": at(110), "count": 4}, Event),
        json.from_data({"reason": "A", "message": "a", "eventTime": "2026-01-01T00:00:20.000000Z"}, Event),
    ]
    assert told(events, NOW) == ["  100s ago  A: a", "   10s ago  B: b (x4)"]


def test_a_session_tells_by_whom_it_was_added() -> None:
    """From what the server keeps of who wrote which field."""
    fields: dict[str, Any] = {"f:spec": {"f:ephemeralContainers": {'k:{"name":"debug"}': {".": {}}}}}
    found = pod(
        metadata={
            "managedFields": [
                {"manager": "kubelet", "fieldsV1": {"f:status": {}}},
                {"manager": manager("roy"), "fieldsV1": fields},
            ]
        },
        spec={
            "ephemeralContainers": [
                {"name": "debug", "image": "busybox", "targetContainerName": "app"},
                {"name": "other", "image": "gdb"},
                {"name": "third", "image": "gdb"},
            ]
        },
        ephemeralContainerStatuses=[
            one("debug", {"running": {"startedAt": at(60)}}),
            one("other", ended(2, reason="Error")),
        ],
    )
    debug, other, third = sessions([found])
    assert (debug.by, debug.state, debug.is_running, debug.age(NOW)) == ("roy", "Running", True, "60s")
    assert (debug.namespace, debug.pod, debug.image, debug.target) == ("ns", "web", "busybox", "app")
    assert (other.by, other.state, other.is_running) == ("", "Error (2)", False)
    assert (third.state, third.age(NOW)) == ("Waiting", "")


def test_only_terminals_that_run_are_offered() -> None:
    """Nobody is asked whether to attach to what has exited, waits, or listens to nobody."""
    terminal = {"image": "busybox", "stdin": True, "tty": True}
    running = {"running": {"startedAt": at(60)}}
    found = pod(
        spec={
            "ephemeralContainers": [
                {"name": "runs", **terminal},
                {"name": "over", **terminal},
                {"name": "waits", **terminal},
                {"name": "unknown", **terminal},
                {"name": "deaf", **terminal, "stdin": False},
                {"name": "piped", **terminal, "tty": False},
            ]
        },
        ephemeralContainerStatuses=[
            one("runs", running),
            one("over", ended(0)),
            one("waits", {"waiting": {"reason": "ImagePullBackOff"}}),
            one("deaf", running),
            one("piped", running),
        ],
    )
    assert [session.container for session in attachable(found)] == ["runs"]


def test_any_user_can_be_named() -> None:
    assert manager("ro\ty") == "podling-debug:roy"
    assert len(manager("x" * 500)) == MOST_MANAGER


def test_pods_made_to_debug_in_are_sessions() -> None:
    """With who made them, and when they end by themselves."""
    found = pod(
        metadata={
            "annotations": {"podling.dev/debug-container": "app"},
            "managedFields": [{"manager": "kubelet"}, {"manager": manager("roy")}],
        },
        app={"command": ["sh"], "args": ["-c", "x"]},
        spec={"activeDeadlineSeconds": 600},
        startTime=at(60),
        containerStatuses=[one("app", {"running": {"startedAt": at(61)}})],
    )
    (made,) = sessions([found])
    assert (made.container, made.by, made.state, made.node) == ("app", "roy", "Running", "n1")
    assert (made.until, made.left(NOW), made.command) == ("2026-01-01T00:11:00Z", "9m", ["sh", "-c", "x"])


def test_a_pod_of_which_no_kubelet_has_said_anything_is_not_ready() -> None:
    found = why(pod())
    assert (found.verdict, found.is_ready) == ("web waits for the kubelet of n1", False)
