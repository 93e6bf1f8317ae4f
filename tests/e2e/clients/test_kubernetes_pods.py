"""R-SYS-1: the official Python client runs pods: their life, their streams, what changes them through
subresources, and what throws them out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client, watch
from kubernetes.client import ApiException
from kubernetes.stream import portforward, stream
from kubernetes.stream.ws_client import WSClient

from e2e.clients.required import required

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.usefixtures("no_socket_left"),
    # The client leaves the sockets of streams to the collector, closed or not.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

Manifest = dict[str, Any]
MakePod = Callable[..., Manifest]
PATIENCE = 60
"""Seconds that a test waits for what never fails to come."""


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


@pytest.fixture
def running(core: client.CoreV1Api, space: str, web: Manifest) -> str:
    """The namespace of a pod called `web` that is ready."""
    core.create_namespaced_pod(space, web)  # type: ignore[arg-type]
    until(core, space, "web", ready)
    return space


def until(core: client.CoreV1Api, space: str, name: str, good: Callable[[Any], bool]) -> client.V1Pod:
    """The pod, once a watch shows it as it should be."""
    events = watch.Watch().stream(
        core.list_namespaced_pod, space, field_selector=f"metadata.name={name}", timeout_seconds=PATIENCE
    )
    for event in events:
        pod: client.V1Pod = event["object"]
        if good(pod):
            events.close()
            return pod
    raise AssertionError(f"{name} is {core.read_namespaced_pod(name, space).status}")


def ready(pod: client.V1Pod) -> bool:
    conditions = required(pod.status).conditions or []
    return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)


def execute(core: client.CoreV1Api, space: str, script: str, **options: Any) -> WSClient:
    options = {"stderr": True, "stdin": False, "stdout": True, "tty": False, **options}
    command = ["sh", "-c", script]
    opened: WSClient = stream(
        core.connect_get_namespaced_pod_exec, "web", space, command=command, _preload_content=False, **options
    )
    return opened


def test_the_life_of_a_pod_as_a_watch_tells_it(core: client.CoreV1Api, space: str, make_pod: MakePod) -> None:
    start = required(core.list_namespaced_pod(space).metadata).resource_version
    init = {"name": "first", "image": "podling.test/busybox:1", "command": ["true"]}
    core.create_namespaced_pod(
        space,
        make_pod("brief", "echo done", restartPolicy="Never", initContainers=[init]),  # type: ignore[arg-type]
    )
    phases, initialized = [], []
    events = watch.Watch().stream(
        core.list_namespaced_pod, space, resource_version=start, timeout_seconds=PATIENCE
    )
    for event in events:
        status = event["object"].status
        phases.append(status.phase)
        initialized += [c.status for c in status.conditions or [] if c.type == "Initialized"]
        if status.phase == "Succeeded":
            events.close()
    assert list(dict.fromkeys(phases)) in (["Pending", "Running", "Succeeded"], ["Pending", "Succeeded"])
    assert list(dict.fromkeys(initialized)) == ["False", "True"]
    ended = event["object"].status
    assert ended.container_statuses[0].state.terminated.reason == "Completed"
    assert ended.init_container_statuses[0].state.terminated.exit_code == 0
    assert core.read_namespaced_pod_log("brief", space) == "done\n"


def test_events_tell_what_happened(core: client.CoreV1Api, running: str) -> None:
    events = watch.Watch().stream(
        core.list_namespaced_event,
        running,
        field_selector="involvedObject.name=web",
        timeout_seconds=PATIENCE,
    )
    wanted = {"Scheduled", "Pulled", "Created", "Started"}
    for event in events:
        wanted.discard(event["object"].reason)
        if not wanted:
            events.close()
    assert not wanted


def test_exec_gives_outputs_and_exit_code(core: client.CoreV1Api, running: str) -> None:
    session = execute(core, running, "echo out; echo err >&2; exit 7")
    session.run_forever(timeout=PATIENCE)
    assert (session.read_stdout(), session.read_stderr(), session.returncode) == ("out\n", "err\n", 7)


def test_exec_takes_input(core: client.CoreV1Api, running: str) -> None:
    session = execute(core, running, "read a; read b; echo $b $a", stdin=True)
    session.write_stdin("one\n")
    session.write_stdin("two\n")
    assert session.readline_stdout(timeout=PATIENCE) == "two one"
    session.run_forever(timeout=PATIENCE)
    assert session.returncode == 0


def test_the_end_of_input_reaches_the_command(core: client.CoreV1Api, running: str) -> None:
    """Half a close is what v5 of the protocol brought."""
    session = execute(core, running, "cat; echo ended", stdin=True)
    assert session.subprotocol == "v5.channel.k8s.io"
    session.write_stdin("through\n")
    session.close_channel(0)
    session.run_forever(timeout=PATIENCE)
    assert session.read_stdout() == "through\nended\n"


def test_exec_with_a_terminal_of_a_size(core: client.CoreV1Api, running: str) -> None:
    session = execute(
        core, running, "until stty size 2>&1 | grep 45; do read again; done", stdin=True, tty=True
    )
    session.write_channel(4, json.dumps({"Width": 123, "Height": 45}))
    while session.is_open():
        session.write_stdin("again\n")
        session.update(timeout=1)
    assert "45 123" in session.read_stdout() and session.returncode == 0


def test_exec_with_all_that_was_said_at_once(core: client.CoreV1Api, running: str) -> None:
    said = stream(
        core.connect_get_namespaced_pod_exec,
        "web",
        running,
        command=["cat", "/www/index.html"],
        stderr=True,
        stdin=False,
        stdout=True,
        tty=False,
    )
    assert said == "served\n"


def test_exec_in_what_is_not_there(core: client.CoreV1Api, running: str) -> None:
    with pytest.raises(ApiException) as raised:
        execute(core, running, "true", container="nowhere")
    assert raised.value.status == 0 and "Handshake status 400" in raised.value.reason
    assert "container nowhere is not valid for pod web" in raised.value.reason


def test_attach_hears_what_is_said_next(core: client.CoreV1Api, space: str, make_pod: MakePod) -> None:
    pod = make_pod("talk", "while read line; do echo heard $line; done")
    pod["spec"]["containers"][0]["stdin"] = True
    core.create_namespaced_pod(space, pod)  # type: ignore[arg-type]
    until(core, space, "talk", ready)
    session = stream(
        core.connect_get_namespaced_pod_attach,
        "talk",
        space,
        stderr=True,
        stdin=True,
        stdout=True,
        tty=False,
        _preload_content=False,
    )
    session.write_stdin("you\n")
    assert session.readline_stdout(timeout=PATIENCE) == "heard you"
    session.close()


def test_logs_are_read_from_where_one_likes(core: client.CoreV1Api, space: str, make_pod: MakePod) -> None:
    core.create_namespaced_pod(space, make_pod("talk", "seq 5", restartPolicy="Never"))  # type: ignore[arg-type]
    until(core, space, "talk", lambda pod: pod.status.phase == "Succeeded")
    assert core.read_namespaced_pod_log("talk", space, tail_lines=2) == "4\n5\n"
    assert core.read_namespaced_pod_log("talk", space, limit_bytes=4) == "1\n2\n"
    stamped = core.read_namespaced_pod_log("talk", space, timestamps=True, container="app")
    assert [line.split()[1] for line in stamped.splitlines()] == list("12345")
    assert list(watch.Watch().stream(core.read_namespaced_pod_log, "talk", space)) == list("12345")


def test_logs_are_followed_as_they_are_written(core: client.CoreV1Api, running: str) -> None:
    said = execute(core, running, "for n in 1 2 3; do echo line $n > /proc/1/fd/1; done")
    said.run_forever(timeout=PATIENCE)
    lines = watch.Watch().stream(core.read_namespaced_pod_log, "web", running)
    assert [next(lines) for _ in range(3)] == ["line 1", "line 2", "line 3"]
    execute(core, running, "echo more > /proc/1/fd/1").run_forever(timeout=PATIENCE)
    assert next(lines) == "more"
    lines.close()


def test_ports_are_forwarded(core: client.CoreV1Api, running: str) -> None:
    forward = portforward(core.connect_get_namespaced_pod_portforward, "web", running, ports="8080,9")
    page, closed = forward.socket(8080), forward.socket(9)
    page.settimeout(PATIENCE)
    page.sendall(b"GET / HTTP/1.0\r\n\r\n")
    answer = b"".join(iter(lambda: page.recv(4096), b""))
    assert answer.endswith(b"served\n") and b"200 OK" in answer
    closed.settimeout(PATIENCE)
    assert closed.recv(10) == b""
    assert forward.error(8080) is None and "refused" in forward.error(9)
    page.close()
    closed.close()


def test_an_ephemeral_container_by_its_subresource(core: client.CoreV1Api, running: str) -> None:
    """R-EPH-1"""
    debugger = {
        "name": "debug",
        "image": "podling.test/busybox:1",
        "command": ["sh", "-c", "ps; echo looked"],
        "targetContainerName": "app",
    }
    core.patch_namespaced_pod_ephemeralcontainers(
        "web", running, {"spec": {"ephemeralContainers": [debugger]}}
    )

    def has_looked(pod: client.V1Pod) -> bool:
        statuses = required(pod.status).ephemeral_container_statuses or []
        return any(required(status.state).terminated for status in statuses)

    assert ready(until(core, running, "web", has_looked))
    said = core.read_namespaced_pod_log("web", running, container="debug")
    assert "httpd" in said and said.endswith("looked\n")


def test_a_status_is_written_by_itself(core: client.CoreV1Api, running: str) -> None:
    condition = {"type": "example.com/Blessed", "status": "True"}
    patched = core.patch_namespaced_pod_status(
        "web", running, {"status": {"conditions": [condition]}, "metadata": {"labels": {"app": "x"}}}
    )
    assert "example.com/Blessed" in [c.type for c in required(required(patched.status).conditions)]
    unchanged = core.patch_namespaced_pod("web", running, {"status": {"phase": "Failed"}})
    assert required(unchanged.status).phase == "Running"


def test_a_budget_keeps_a_pod_from_eviction(
    api: client.ApiClient, core: client.CoreV1Api, running: str
) -> None:
    policy = client.PolicyV1Api(api)
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    policy.create_namespaced_pod_disruption_budget(running, {"metadata": {"name": "b"}, "spec": budget})  # type: ignore[arg-type]
    events = watch.Watch().stream(
        policy.list_namespaced_pod_disruption_budget, running, timeout_seconds=PATIENCE
    )
    for event in events:
        if event["object"].status.current_healthy == 1:
            events.close()
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="web"))
    with pytest.raises(ApiException) as raised:
        core.create_namespaced_pod_eviction("web", running, eviction)
    cause = json.loads(required(raised.value.body))["details"]["causes"][0]
    assert (raised.value.status, cause["reason"]) == (429, "DisruptionBudget")
    policy.delete_namespaced_pod_disruption_budget("b", running)
    core.create_namespaced_pod_eviction("web", running, eviction)
    gone = watch.Watch().stream(core.list_namespaced_pod, running, timeout_seconds=PATIENCE)
    assert any(event["type"] == "DELETED" for event in closing(gone, "DELETED"))


def closing(events: Any, last: str) -> Any:
    """The events up to the first of a type."""
    for event in events:
        yield event
        if event["type"] == last:
            events.close()


def test_deletion_is_graceful_or_at_once(core: client.CoreV1Api, space: str, make_pod: MakePod) -> None:
    for name in ("slow", "quick"):
        core.create_namespaced_pod(space, make_pod(name, terminationGracePeriodSeconds=20))  # type: ignore[arg-type]
        until(core, space, name, ready)
    listed = required(core.list_namespaced_pod(space).metadata).resource_version
    dying = core.delete_namespaced_pod("slow", space)
    assert (
        required(dying.metadata).deletion_grace_period_seconds == 20
        and required(dying.metadata).deletion_timestamp
    )
    core.delete_namespaced_pod("quick", space, grace_period_seconds=0)
    assert "quick" not in [required(pod.metadata).name for pod in core.list_namespaced_pod(space).items]
    events = watch.Watch().stream(
        core.list_namespaced_pod,
        space,
        field_selector="metadata.name=slow",
        resource_version=listed,
        timeout_seconds=PATIENCE,
    )
    assert [event["type"] for event in closing(events, "DELETED")][-1] == "DELETED"


def test_a_node_is_cordoned(core: client.CoreV1Api) -> None:
    (node,) = core.list_node().items
    core.patch_node(required(required(node.metadata).name), {"metadata": {"labels": {"tests": "here"}}})
    (found,) = core.list_node(label_selector="tests=here").items
    assert required(required(found.status).node_info).kubelet_version.startswith("v1.36")
    core.patch_node(required(required(node.metadata).name), {"metadata": {"labels": {"tests": None}}})
