"""R-SYS-1: an operator written with kopf takes care of pods: it watches, patches, holds by finalizers, posts
events, adopts, and picks up where it left off.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, watch
from kubernetes.client import ApiException

from e2e.clients.required import required

pytestmark = pytest.mark.containerd

Manifest = dict[str, Any]
PATIENCE = 60
OPERATOR = Path(__file__).parent / "operators" / "caretaker.py"
FINALIZER = "tests.podling.dev/yes"


@contextmanager
def operating(admin: str, log: Path, care: str) -> Iterator[None]:
    """The operator at work for the pods of a label. It ends in peace when it is told to."""
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--all-namespaces", str(OPERATOR)]
    env = {**os.environ, "KUBECONFIG": admin, "CARE": care}
    with log.open("ab") as out, subprocess.Popen(command, stdout=out, stderr=out, env=env) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
    assert process.returncode == 0, log.read_text()


@pytest.fixture(scope="module")
def operator(admin: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The log of an operator of the whole cluster."""
    log = tmp_path_factory.mktemp("kopf") / "log"
    with operating(admin, log, "yes"):
        yield log
    _, fault, said = log.read_text().partition("Traceback")
    # The last lines of a failure are what is kept of it: the fault, not the thousand lines before it.
    assert not fault, said[:4000]


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


@pytest.fixture
def cared(make_pod: Callable[..., Manifest]) -> Callable[..., Manifest]:
    """The manifest of a pod that the operator takes care of."""

    def cared(name: str, **labels: str) -> Manifest:
        pod = make_pod(name)
        pod["metadata"]["labels"] = {"care": "yes", **labels}
        return pod

    return cared


def until(events: Generator[Any, None, None], good: Callable[[Any], bool]) -> Any:
    """The first object seen that is as it should be."""
    for event in events:
        if good(event):
            events.close()
            return event["object"]
    raise AssertionError("it never was as it should be")


def annotated(core: client.CoreV1Api, space: str, name: str, key: str, value: str) -> client.V1Pod:
    events = watch.Watch().stream(
        core.list_namespaced_pod, space, field_selector=f"metadata.name={name}", timeout_seconds=PATIENCE
    )
    pod: client.V1Pod
    pod = until(events, lambda event: (event["object"].metadata.annotations or {}).get(key) == value)
    return pod


def gone(core: client.CoreV1Api, space: str, name: str) -> None:
    core.delete_namespaced_pod(name, space, grace_period_seconds=1)
    events = watch.Watch().stream(
        core.list_namespaced_pod, space, resource_version="0", timeout_seconds=PATIENCE
    )
    for event in events:
        if (event["type"], event["object"].metadata.name) == ("DELETED", name):
            events.close()


@pytest.mark.usefixtures("operator")
def test_a_pod_is_greeted(core: client.CoreV1Api, space: str, cared: Callable[..., Manifest]) -> None:
    """By an annotation, and by an event that `kubectl describe` would show."""
    core.create_namespaced_pod(space, cared("one"))  # type: ignore[arg-type]
    pod = annotated(core, space, "one", "caretaker/neighbours", "1")
    assert required(pod.metadata).finalizers == [FINALIZER]
    assert "kopf.zalando.org/last-handled-configuration" in required(required(pod.metadata).annotations)
    events = watch.Watch().stream(
        core.list_namespaced_event, space, field_selector="reason=Greeted", timeout_seconds=PATIENCE
    )
    said = until(events, lambda event: True)
    assert (said.message, said.involved_object.name, said.type) == ("Hello one", "one", "Normal")
    gone(core, space, "one")


@pytest.mark.usefixtures("operator")
def test_changes_of_a_field_are_followed(
    core: client.CoreV1Api, space: str, cared: Callable[..., Manifest]
) -> None:
    core.create_namespaced_pod(space, cared("one", mood="glad"))  # type: ignore[arg-type]
    annotated(core, space, "one", "caretaker/mood", "None then glad")
    core.patch_namespaced_pod("one", space, {"metadata": {"labels": {"mood": "sad"}}})
    annotated(core, space, "one", "caretaker/mood", "glad then sad")
    gone(core, space, "one")


@pytest.mark.usefixtures("operator")
def test_what_fails_for_now_is_tried_again(
    core: client.CoreV1Api, space: str, cared: Callable[..., Manifest]
) -> None:
    """kopf keeps its progress in annotations of the pod."""
    core.create_namespaced_pod(space, cared("one", shy="yes"))  # type: ignore[arg-type]
    pod = annotated(core, space, "one", "caretaker/approached", "after 2 tries")
    assert required(pod.metadata).labels == {"care": "yes", "shy": "yes"}
    gone(core, space, "one")


@pytest.mark.usefixtures("operator")
def test_a_daemon_guards_each_pod(core: client.CoreV1Api, space: str, cared: Callable[..., Manifest]) -> None:
    for name in ("one", "two"):
        core.create_namespaced_pod(space, cared(name, guarded="yes"))  # type: ignore[arg-type]
    for name in ("one", "two"):
        annotated(core, space, name, "caretaker/guarded", "yes")
        gone(core, space, name)


@pytest.mark.usefixtures("operator")
def test_a_pod_goes_when_its_handler_has_run(
    core: client.CoreV1Api, space: str, cared: Callable[..., Manifest]
) -> None:
    core.create_namespaced_pod(space, cared("one"))  # type: ignore[arg-type]
    annotated(core, space, "one", "caretaker/neighbours", "1")
    gone(core, space, "one")
    assert core.read_namespaced_config_map("will-of-one", space).data == {"said": "goodbye"}


@pytest.mark.usefixtures("operator")
def test_a_child_that_was_adopted_goes_with_its_parent(core: client.CoreV1Api, space: str) -> None:
    parent = {"metadata": {"name": "parent", "annotations": {"caretaker/child": "wanted"}}}
    core.create_namespaced_config_map(space, parent)  # type: ignore[arg-type]
    events = watch.Watch().stream(core.list_namespaced_secret, space, timeout_seconds=PATIENCE)
    child = next(event["object"] for event in events if event["object"].metadata.name == "child")
    (owner,) = child.metadata.owner_references
    assert (owner.kind, owner.name, owner.controller) == ("ConfigMap", "parent", True)
    core.delete_namespaced_config_map("parent", space)
    assert next(events)["type"] == "DELETED"
    events.close()


@pytest.mark.usefixtures("operator")
def test_a_deployment_that_an_operator_owns_is_made_scaled_and_removed(
    api: client.ApiClient, core: client.CoreV1Api, space: str
) -> None:
    """The operator hears of what the controllers do with it, by its status."""

    def available(count: str) -> None:
        events = watch.Watch().stream(
            core.list_namespaced_config_map,
            space,
            field_selector="metadata.name=site",
            timeout_seconds=PATIENCE,
        )
        told = "caretaker/available"
        until(events, lambda event: (event["object"].metadata.annotations or {}).get(told) == count)

    wanted = {"metadata": {"name": "site", "annotations": {"caretaker/site": "wanted"}}}
    core.create_namespaced_config_map(space, {**wanted, "data": {"replicas": "1"}})  # type: ignore[arg-type]
    available("1")
    apps = client.AppsV1Api(api)
    (owner,) = required(required(apps.read_namespaced_deployment("site", space).metadata).owner_references)
    assert (owner.kind, owner.name, owner.controller) == ("ConfigMap", "site", True)
    core.patch_namespaced_config_map("site", space, {"data": {"replicas": "3"}})
    available("3")
    listed = core.list_namespaced_pod(space)
    left = {required(pod.metadata).name for pod in listed.items}
    since = {"resource_version": required(listed.metadata).resource_version, "timeout_seconds": PATIENCE}
    core.delete_namespaced_config_map("site", space)
    events = watch.Watch().stream(apps.list_namespaced_deployment, space, **since)
    until(events, lambda event: event["type"] == "DELETED")
    pods = watch.Watch().stream(core.list_namespaced_pod, space, **since)
    while left:
        event = next(pods)
        if event["type"] == "DELETED":
            left.discard(event["object"].metadata.name)
    pods.close()


@pytest.mark.usefixtures("operator")
def test_others_are_left_alone(core: client.CoreV1Api, space: str, make_pod: Callable[..., Manifest]) -> None:
    core.create_namespaced_pod(space, make_pod("other"))  # type: ignore[arg-type]
    events = watch.Watch().stream(core.list_namespaced_pod, space, timeout_seconds=PATIENCE)
    pod = until(events, lambda event: event["object"].status.phase == "Running")
    assert not pod.metadata.finalizers and not pod.metadata.annotations


def test_an_operator_that_was_away_comes_back_to_its_work(
    core: client.CoreV1Api, admin: str, space: str, cared: Callable[..., Manifest], tmp_path: Path
) -> None:
    """A pod deleted while nobody cared stays until somebody does."""
    core.create_namespaced_pod(space, cared("one", care="later"))  # type: ignore[arg-type]
    with operating(admin, tmp_path / "first", "later"):
        annotated(core, space, "one", "caretaker/neighbours", "1")
    core.delete_namespaced_pod("one", space, grace_period_seconds=1)
    assert required(core.read_namespaced_pod("one", space).metadata).deletion_timestamp
    with operating(admin, tmp_path / "second", "later"):
        events = watch.Watch().stream(core.list_namespaced_pod, space, timeout_seconds=PATIENCE)
        until(events, lambda event: event["type"] == "DELETED")
    with pytest.raises(ApiException):
        core.read_namespaced_pod("one", space)
    assert core.read_namespaced_config_map("will-of-one", space).data == {"said": "goodbye"}
