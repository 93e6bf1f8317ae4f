"""The ephemeral container of a request: its name, its image, and the JSON that is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from podling.model.types.pod import Pod
    from podling.model.types.pod_status import ContainerStatus

NAME = "debug"
IMAGE = "busybox"


class Wish(NamedTuple):
    """What the user asks for. Empty values are not set."""

    image: str = IMAGE
    target: str = ""
    command: Sequence[str] = ()
    are_arguments: bool = False
    """Whether `command` are the arguments of the image's own command."""
    env: Sequence[tuple[str, str]] = ()
    pull: str = ""
    stdin: bool = False
    tty: bool = False
    like_target: bool = False
    """Whether it has the target's mounts, environment, user and directory."""
    root: bool = False
    """Whether the target's files are its `/`, as far as it may look at them."""
    idle: int = 0
    """Seconds after which a terminal that nobody uses ends; 0 for never."""
    ends_with_session: bool = False


class WishError(ValueError):
    """What is asked for cannot be; the message says why and what to do."""


def pod_path(namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Of the API: a pod, or the collection of those of a namespace, or of all. Raises WishError."""
    parts = ("/api/v1", f"namespaces/{segment(namespace)}" if namespace else "", "pods", segment(name))
    return "/".join(part for part in (*parts, subresource) if part)


def segment(name: str) -> str:
    """The name of an object as a part of a path. Raises WishError for one that no object has, and that might
    lead to another, as kubectl does."""
    if name in (".", "..") or "/" in name or "%" in name:
        raise WishError(f'"{name}" is no name: it may not be "." or "..", nor contain "/" or "%"')
    return quote(name, safe="")


def free_name(pod: Pod) -> str:
    """`debug`, or with the first number that no container of the pod has."""
    taken = {container.name for container in all_containers(pod)}
    if NAME not in taken:
        return NAME
    number = 2
    while f"{NAME}-{number}" in taken:
        number += 1
    return f"{NAME}-{number}"


def all_containers(pod: Pod) -> list[Any]:
    return [*pod.spec.init_containers, *pod.spec.containers, *pod.spec.ephemeral_containers]


def check_target(pod: Pod, target: str) -> None:
    """Raises WishError."""
    names = [container.name for container in (*pod.spec.containers, *pod.spec.init_containers)]
    if target and target not in names:
        raise WishError(
            f'--target: pod {pod.metadata.name} has no container "{target}": it has {", ".join(names)}'
        )


def document(name: str, wish: Wish, security_context: Mapping[str, Any]) -> dict[str, Any]:
    """The ephemeral container as the API takes it."""
    found: dict[str, Any] = {
        "name": name,
        "image": wish.image,
        "imagePullPolicy": wish.pull,
        "targetContainerName": wish.target,
        "args" if wish.are_arguments else "command": list(wish.command),
        "env": [{"name": key, "value": value} for key, value in wish.env],
        "securityContext": dict(security_context),
        "stdin": wish.stdin,
        "stdinOnce": wish.stdin and wish.ends_with_session,
        "tty": wish.tty,
    }
    return {key: value for key, value in found.items() if value}


def like(target: Mapping[str, Any], container: Mapping[str, Any]) -> dict[str, Any]:
    """The container with what its target sees: volumes, environment, user, group and directory. What the
    container says itself counts. Mounts of a part of a volume are left away: an ephemeral container may have
    none."""
    made = dict(container)
    mounts = [
        one for one in target.get("volumeMounts", []) if "subPath" not in one and "subPathExpr" not in one
    ]
    own = {one["name"] for one in container.get("env", [])}
    env = [*(one for one in target.get("env", []) if one["name"] not in own), *container.get("env", [])]
    rights = target.get("securityContext", {})
    user = {key: rights[key] for key in ("runAsUser", "runAsGroup", "runAsNonRoot") if key in rights}
    given = {
        "volumeMounts": mounts,
        "env": env,
        "envFrom": target.get("envFrom", []),
        "workingDir": target.get("workingDir", ""),
        "securityContext": {**container.get("securityContext", {}), **user},
    }
    return made | {key: value for key, value in given.items() if value}


def status_of(pod: Pod, name: str) -> ContainerStatus | None:
    status = pod.status
    of_all = (
        *status.ephemeral_container_statuses,
        *status.container_statuses,
        *status.init_container_statuses,
    )
    return next((one for one in of_all if one.name == name), None)
