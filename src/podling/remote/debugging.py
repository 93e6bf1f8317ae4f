"""`podling debug` on a cluster: wait for the container, attach, and tell how it ended; pods of its own."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, NamedTuple

from podling.debug import profiles
from podling.debug.container import NAME, WishError, check_target
from podling.debug.copies import (
    FILES_AT,
    NODE_CONTAINER,
    Copy,
    copied,
    customized,
    has_files,
    held,
    node_pod,
)
from podling.debug.progress import NoContainer, Over
from podling.debug.wrapping import wrapped
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.types.pod import Pod
from podling.remote.adding import Request, rights
from podling.remote.beside import beside
from podling.remote.pods import Cluster
from podling.remote.terminal import Narrator
from podling.remote.waiting import RETRY, until_running

FORBIDDEN, NOT_FOUND = 403, 404
ACCOUNT = 15.0
"""Seconds until a new namespace has its service account."""


class Aside(NamedTuple):
    """How a pod of its own is made. `replace` deletes the copied one, `remove` this one at the end; `hold`
    is the init container to stand still at."""

    copy: Copy
    replace: bool = False
    remove: bool = False
    hold: str = ""


async def attached(cluster: Cluster, request: Request, pod: Pod, name: str, narrator: Narrator) -> int:
    """The exit code of the container's command, once it has run. Raises NoContainer, StatusError, OSError."""
    # Not before: it is imported while the container starts.
    from podling.remote.attaching import attach

    try:
        async with beside(cluster.foresee_attach()):
            at = await until_running(cluster, pod, name, narrator, request.timeout)
        if isinstance(at, Over) and at.reason not in ("Completed", "Error"):
            raise NoContainer(f"{name} could not be started: {at.message or at.reason}")
        is_over = isinstance(at, Over)
        return await attach(cluster, pod, name, request.wish, narrator.recording, is_over=is_over)
    except (asyncio.CancelledError, OSError):
        if request.wish.ends_with_session:
            from podling.remote.stopping import stop

            with suppress(NoContainer, StatusError, OSError):
                await stop(cluster, pod, name)
        raise


async def copy_for(
    cluster: Cluster, request: Request, aside: Aside, narrator: Narrator
) -> tuple[dict[str, Any], str]:
    """The copy that is asked for, as the API takes it, and the container to debug in. Raises WishError,
    StatusError, OSError."""
    found = await cluster.document(request.namespace, request.pod)
    of_pod = json.from_data(found, Pod)
    name = request.container or aside.hold
    if not name:
        name = NAME if request.wish.image else found["spec"]["containers"][0]["name"]
    check_target(of_pod, request.wish.target)
    if aside.hold:
        body = held(found, name, request.wish, aside.copy)
    else:
        allowed = await rights(cluster, request, of_pod, narrator)
        body = copied(found, request.wish._replace(target=""), name, allowed, aside.copy)
    return _customized(request, body, name), name


async def debug_copy(cluster: Cluster, request: Request, aside: Aside, narrator: Narrator) -> int:
    """In a copy of the pod; the exit code. Raises WishError, NoContainer, StatusError, OSError."""
    body, name = await copy_for(cluster, request, aside, narrator)
    made = await _created(cluster, body)
    narrator.say(f"Created pod {aside.copy.name}, a copy of {request.pod}.")
    if aside.replace:
        await cluster.delete(request.namespace, request.pod)
        narrator.say(f"Deleted pod {request.pod}.")
    return await _in_own_pod(cluster, request, aside, made, name, narrator)


def pod_on_node(request: Request, node: str, aside: Aside) -> tuple[dict[str, Any], str]:
    """As `copy_for`, a pod on a node, in its namespaces and with its files."""
    profile = "general" if request.profile == profiles.AUTO else request.profile
    allowed = {} if profile == "general" else dict(profiles.PROFILES[profile])
    if request.wish.root and not has_files(profile):
        raise WishError(f"--root: with the profile {profile} a pod has no files of its node")
    name, container = aside.copy.name, request.container or NODE_CONTAINER
    wish = wrapped(request.wish._replace(target=""), "", FILES_AT)
    body = node_pod(node, request.namespace, name, container, wish, profile, allowed, aside.copy.ttl)
    return _customized(request, body, container), container


async def debug_node(cluster: Cluster, request: Request, node: str, aside: Aside, narrator: Narrator) -> int:
    """As `debug_copy`, in a pod on a node. A namespace that is not there is made."""
    body, container = pod_on_node(request, node, aside)
    try:
        made = await _created(cluster, body)
    except StatusError as error:
        if not is_without_namespace(error):
            raise
        await cluster.create_namespace(request.namespace, {profiles.ENFORCE: "privileged"})
        made = await _created(cluster, body, ACCOUNT)
    narrator.say(f"Created pod {aside.copy.name} in namespace {request.namespace} on node {node}.")
    return await _in_own_pod(cluster, request, aside, made, container, narrator)


def is_without_namespace(error: StatusError) -> bool:
    """Whether the namespace is not there of what was to be made."""
    return error.code == NOT_FOUND and error.kind == "namespaces"


def _customized(request: Request, body: dict[str, Any], name: str) -> dict[str, Any]:
    for container in (*body["spec"]["containers"], *body["spec"].get("initContainers", [])):
        if container["name"] == name:
            container.update(customized(container, dict(request.custom)))
    return body


async def _created(cluster: Cluster, body: dict[str, Any], patience: float = 0.0) -> Pod:
    """`patience` is how many seconds a namespace that was made just now has to get its service account,
    without which admission lets no pod in: a controller makes it."""
    now = asyncio.get_running_loop().time
    retry, end = RETRY.begin(), now() + patience
    while True:
        try:
            await cluster.create(body, dry_run=True)
            return await cluster.create(body)
        except StatusError as error:
            is_early = error.code == FORBIDDEN and "error looking up service account" in error.message
            if not is_early or now() >= end:
                raise
        await asyncio.sleep(retry.next())


async def _in_own_pod(
    cluster: Cluster, request: Request, aside: Aside, pod: Pod, name: str, narrator: Narrator
) -> int:
    try:
        return await attached(cluster, request, pod, name, narrator) if request.attach else 0
    finally:
        if aside.remove:
            # Also when this is being ended.
            await asyncio.shield(cluster.delete(pod.metadata.namespace, pod.metadata.name))
            narrator.say(f"Deleted pod {pod.metadata.name}.")
