"""What `podling debug` decides: names, rights, what is sent, and what a container waits for."""

from __future__ import annotations

from typing import Any

import pytest

from podling.debug.container import Wish, WishError, check_target, document, free_name, like
from podling.debug.copies import Copy, copied, customized, held
from podling.debug.profiles import AUTO, NOBODY, PROFILES, rights
from podling.debug.progress import Never, Over, Progress, Running, Waiting, may_be_joined, progress
from podling.debug.tools import TOOLS, image_for
from podling.model.codec import json
from podling.model.types.pod import Pod


def pod(*, phase: str = "Running", node: str = "n1", **more: Any) -> Pod:
    status = {"phase": phase, **more.pop("status", {})}
    metadata = {"name": "web", **more.pop("metadata", {})}
    spec = {"nodeName": node, "containers": [{"name": "app", "image": "i"}], **more}
    return json.from_data({"metadata": metadata, "spec": spec, "status": status}, Pod)


def state(**state: Any) -> dict[str, Any]:
    return {"ephemeralContainerStatuses": [{"name": "debug", "state": state}]}


def test_the_name_is_debug_until_it_is_taken() -> None:
    """R-CLI-2."""
    assert free_name(pod()) == "debug"
    used = [{"name": name, "image": "i"} for name in ("debug", "debug-2", "debug-4")]
    assert free_name(pod(ephemeralContainers=used)) == "debug-3"


@pytest.mark.parametrize(
    ("wish", "sent"),
    [
        (Wish(), {"image": "busybox"}),
        (Wish("i", command=("sh", "-c", "x")), {"image": "i", "command": ["sh", "-c", "x"]}),
        (Wish("i", command=("x",), are_arguments=True), {"image": "i", "args": ["x"]}),
        (
            Wish("i", target="app", pull="Never", env=(("A", "b=c"),), stdin=True, tty=True),
            {
                "image": "i",
                "targetContainerName": "app",
                "imagePullPolicy": "Never",
                "env": [{"name": "A", "value": "b=c"}],
                "stdin": True,
                "tty": True,
            },
        ),
    ],
)
def test_only_what_is_asked_for_is_sent(wish: Wish, sent: dict[str, Any]) -> None:
    assert document("debug", wish, {}) == {"name": "debug", **sent}


def test_a_target_that_is_not_there_is_named() -> None:
    with pytest.raises(WishError, match='no container "ap": it has app'):
        check_target(pod(), "ap")
    check_target(pod(), "app")
    check_target(pod(), "")


@pytest.mark.parametrize(
    ("enforced", "of_pod", "profile", "user", "given_up"),
    [
        ("", {}, "general", None, ""),
        ("privileged", {}, "general", None, ""),
        ("of 2030", {}, "general", None, ""),
        ("baseline", {}, "baseline", None, "no SYS_PTRACE"),
        ("restricted", {}, "restricted", NOBODY, "no SYS_PTRACE; root is not allowed"),
        ("restricted", {"runAsUser": 7}, "restricted", None, "no SYS_PTRACE"),
        ("", {"runAsNonRoot": True}, "general", NOBODY, "root is not allowed"),
        ("", {"runAsNonRoot": True, "runAsUser": 0}, "general", NOBODY, "root is not allowed"),
        ("", {"runAsUser": 0}, "general", None, ""),
        ("", {"runAsNonRoot": True, "runAsUser": 7}, "general", None, ""),
    ],
)
def test_auto_is_the_strongest_profile_that_is_allowed(
    enforced: str, of_pod: dict[str, Any], profile: str, user: int | None, given_up: str
) -> None:
    found = rights(AUTO, pod(securityContext=of_pod), "", enforced)
    assert found.profile == profile
    assert found.security_context == {**PROFILES[profile], **({"runAsUser": user} if user else {})}
    assert given_up in found.given_up and bool(given_up) is bool(found.given_up)


@pytest.mark.parametrize(("target", "user"), [("", 7), ("app", 7), ("second", NOBODY), ("init", 9)])
def test_who_must_not_be_root_is_the_target_s_user(target: str, user: int) -> None:
    containers = [
        {"name": "app", "image": "i", "securityContext": {"runAsUser": 7}},
        {"name": "second", "image": "i", "securityContext": {"runAsUser": 0}},
    ]
    init = [{"name": "init", "image": "i", "securityContext": {"runAsUser": 9}}]
    of_pod = {"runAsNonRoot": True}
    found = rights(AUTO, pod(containers=containers, initContainers=init, securityContext=of_pod), target, "")
    assert found.security_context["runAsUser"] == user


def test_a_profile_that_is_asked_for_is_given() -> None:
    assert rights("sysadmin", pod(), "", "restricted").security_context == {"privileged": True}


@pytest.mark.parametrize(
    ("found", "at"),
    [
        (pod(), Waiting("waiting for the kubelet")),
        (pod(status=state(waiting={"reason": "ContainerCreating"})), Waiting("waiting for the kubelet")),
        (
            pod(status=state(waiting={"reason": "ImagePullBackOff", "message": "no such image"})),
            Waiting("ImagePullBackOff: no such image"),
        ),
        (
            pod(status=state(waiting={"reason": "InvalidImageName", "message": "bad"})),
            Never("InvalidImageName: bad"),
        ),
        (pod(status=state(running={})), Running()),
        (
            pod(status=state(terminated={"exitCode": 3, "reason": "Error", "message": "m"})),
            Over(3, "Error", "m"),
        ),
        (pod(phase="Succeeded"), Never("pod web has finished (Succeeded): nothing runs in it any more")),
        (pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), Never("pod web is being deleted")),
        (
            pod(
                node="",
                status={"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}]},
            ),
            Waiting("pod web has no node yet: 0/1 nodes"),
        ),
    ],
)
def test_what_a_container_waits_for(found: Pod, at: Progress) -> None:
    assert progress(found, "debug") == at


@pytest.mark.parametrize(
    ("states", "joined"),
    [
        ({}, True),
        (state(waiting={"reason": "ContainerCreating"}), True),
        (state(waiting={"reason": "ErrImagePull", "message": "no such image"}), True),
        (state(running={}), True),
        (state(waiting={"reason": "ErrImageNeverPull"}), False),
        (state(terminated={"exitCode": 0, "reason": "Completed"}), False),
    ],
)
def test_a_container_that_may_yet_run_is_joined(states: dict[str, Any], joined: bool) -> None:
    """A kubelet tells of a container some time after it was added."""
    assert (
        may_be_joined(pod(ephemeralContainers=[{"name": "debug", "image": "i"}], status=states), "debug")
        is joined
    )
    assert not may_be_joined(pod(status=states), "debug")


@pytest.mark.parametrize(
    ("container", "part", "made"),
    [
        ({"name": "x"}, {}, {"name": "x"}),
        ({"tty": True}, {"tty": None}, {}),
        ({"env": [{"name": "A"}]}, {"env": [{"name": "B"}]}, {"env": [{"name": "B"}, {"name": "A"}]}),
        (
            {"env": [{"name": "A"}]},
            {"env": [{"name": "A", "value": "2"}]},
            {"env": [{"name": "A", "value": "2"}]},
        ),
        ({"securityContext": {"a": 1}}, {"securityContext": {"b": 2}}, {"securityContext": {"a": 1, "b": 2}}),
    ],
)
def test_a_part_is_merged_into_the_container(
    container: dict[str, Any], part: dict[str, Any], made: dict[str, Any]
) -> None:
    assert customized(container, part) == made


@pytest.mark.parametrize("field", ["name", "command", "image", "lifecycle", "volumeDevices"])
def test_what_options_say_no_part_says(field: str) -> None:
    with pytest.raises(WishError, match=f"--custom: {field} cannot be changed so"):
        customized({}, {field: "x"})


def plain(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "app", "image": "i"}]
    return {"metadata": {"name": "web", "namespace": "ns"}, "spec": {"containers": containers, **spec}}


def test_a_copy_that_would_not_differ_is_refused() -> None:
    with pytest.raises(WishError, match="nothing would differ"):
        copied(plain(), Wish(""), "app", rights(AUTO, pod(), "", ""), Copy("c"))
    with pytest.raises(WishError, match='no container "ap"'):
        copied(plain(), Wish(""), "app", rights(AUTO, pod(), "", ""), Copy("c", images=[("ap", "i")]))
    with pytest.raises(WishError, match="no init container init: it has none"):
        held(plain(), "init", Wish(image=""), Copy("c"))


def test_a_copy_keeps_fields_nobody_here_knows() -> None:
    """Of a newer Kubernetes; what the server gave it goes, and it ends when it was told to."""
    source = plain(ofTheFuture={"x": [1]}, nodeName="n", ephemeralContainers=[{"name": "e"}])
    made = copied(
        source, Wish("", command=("x",)), "app", rights("general", pod(), "", ""), Copy("c", ttl=60)
    )
    assert made["spec"]["ofTheFuture"] == {"x": [1]}
    assert not {"nodeName", "ephemeralContainers"} & set(made["spec"])
    assert made["spec"]["activeDeadlineSeconds"] == 60
    assert made["metadata"] == {
        "name": "c",
        "namespace": "ns",
        "annotations": {"podling.dev/debug-container": "app"},
    }


def test_a_container_like_its_target_sees_what_it_sees() -> None:
    target = {
        "name": "app",
        "image": "i",
        "command": ["run"],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}],
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "workingDir": "/srv",
        "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w", "subPath": "x"}],
        "securityContext": {"runAsUser": 7, "runAsGroup": 8, "capabilities": {"drop": ["ALL"]}},
        "resources": {"limits": {"cpu": "1"}},
    }
    own = {
        "name": "debug",
        "image": "busybox",
        "env": [{"name": "B", "value": "2"}],
        "securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}},
    }
    assert like(target, own) == {
        "name": "debug",
        "image": "busybox",
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "workingDir": "/srv",
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}, "runAsUser": 7, "runAsGroup": 8},
    }
    assert like({"name": "app"}, own) == own


def test_tools_are_those_of_the_user_first() -> None:
    assert image_for("net", {}) == TOOLS["net"]
    assert image_for("net", {"net": "mine"}) == "mine"
    with pytest.raises(WishError, match=r'no image for "ne": there are .*net'):
        image_for("ne", {})
