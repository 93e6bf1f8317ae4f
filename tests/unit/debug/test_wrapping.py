"""What runs around a command: the target's files as `/`, and the end of a session that nobody uses."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from podling.debug.container import Wish, WishError
from podling.debug.wrapping import ENDS_ALL, may_look, target_id, wrapped
from podling.model.codec import json
from podling.model.types.pod import Pod


def script(wish: Wish, target: str = "") -> str:
    """As the shell sees it, after the kubelet."""
    return wrapped(wish, target).command[2].replace("$$", "$")


def pod(**spec: Any) -> Pod:
    status = {"name": "app", "state": {"running": {}}, "containerID": "containerd://abc"}
    return json.from_data(
        {
            "metadata": {"name": "web"},
            "spec": {"containers": [{"name": "app"}, {"name": "later"}], **spec},
            "status": {"containerStatuses": [status]},
        },
        Pod,
    )


def test_a_command_is_left_alone_that_needs_nothing() -> None:
    wish = Wish(command=("ls", "-l"))
    assert wrapped(wish, "") == wish


@pytest.mark.parametrize(
    "wish",
    [Wish(root=True), Wish(idle=60, tty=True), Wish(root=True, idle=60, tty=True, command=("a", "b c"))],
)
def test_a_wrapping_is_a_script_for_any_shell(wish: Wish) -> None:
    shell, flag, _, name, *command = wrapped(wish, "abc").command
    assert (shell, flag, name, tuple(command)) == ("sh", "-c", "podling", tuple(wish.command))
    checked = subprocess.run(
        ["sh", "-n"], input=script(wish, "abc"), capture_output=True, text=True, check=True
    )
    assert checked.stderr == ""


def test_the_scripts_are_syntax() -> None:
    assert (
        subprocess.run(["sh", "-n"], input=ENDS_ALL, capture_output=True, text=True, check=True).stderr == ""
    )


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (Wish(root=True, command=("x",), are_arguments=True), "leave --arguments-only away"),
        (Wish(idle=5), "give -it, too"),
    ],
)
def test_what_cannot_be_wrapped_is_refused(wish: Wish, why: str) -> None:
    with pytest.raises(WishError, match=why):
        wrapped(wish, "")


def test_a_target_is_found_by_its_id_where_all_processes_are_shared() -> None:
    assert target_id(pod(), "app") == ""
    assert target_id(pod(shareProcessNamespace=True), "app") == "abc"
    assert target_id(pod(hostPID=True), "app") == "abc"
    with pytest.raises(WishError, match="container later of pod web does not run"):
        target_id(pod(), "later")


@pytest.mark.parametrize(
    ("rights", "of_pod", "of_target", "user"),
    [
        ({}, {}, {}, None),
        ({}, {"runAsUser": 5}, {}, 5),
        ({"runAsUser": 1}, {"runAsUser": 5}, {"runAsUser": 6, "runAsGroup": 7}, 6),
        ({"privileged": True}, {}, {"runAsUser": 6}, None),
        ({"capabilities": {"add": ["SYS_PTRACE"]}}, {}, {"runAsUser": 6}, None),
        ({"capabilities": {"add": ["NET_ADMIN"]}}, {}, {"runAsUser": 6}, 6),
    ],
)
def test_who_may_not_look_at_others_is_the_target_s_user(
    rights: dict[str, Any], of_pod: dict[str, Any], of_target: dict[str, Any], user: int | None
) -> None:
    made = may_look({"securityContext": of_target}, of_pod, {"securityContext": rights})
    assert made["securityContext"].get("runAsUser") == user
    assert {**made["securityContext"], **rights, "runAsUser": user} == {
        **rights,
        "runAsUser": user,
        **({"runAsGroup": 7} if user == 6 and "runAsGroup" in of_target else {}),
    }
