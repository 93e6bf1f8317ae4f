"""A debug container comes into a pod: what is asked for, and the request that adds it. Needs no event loop,
which is imported while the container starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from podling.debug import profiles
from podling.debug.container import (
    Wish,
    WishError,
    all_containers,
    check_target,
    document,
    free_name,
    like,
)
from podling.debug.copies import customized
from podling.debug.profiles import Rights
from podling.debug.progress import may_be_joined
from podling.debug.wrapping import may_look, target_id, wrapped
from podling.model.types.pod import Pod
from podling.process.early import hold_signals
from podling.remote.pods import Cluster
from podling.remote.terminal import Narrator


class Request(NamedTuple):
    """What is asked of `podling debug`; `custom` is a part of a container that is merged into it."""

    namespace: str
    pod: str
    wish: Wish
    container: str = ""
    profile: str = profiles.AUTO
    attach: bool = True
    timeout: float = 120.0
    custom: Mapping[str, Any] = {}


async def joinable(cluster: Cluster, request: Request, pod: Pod, narrator: Narrator) -> tuple[Pod, str]:
    """The pod with the container that is asked for, and its name: one that runs already, or a new one. Raises
    WishError, StatusError, OSError."""
    name = request.container or free_name(pod)
    if not request.container:
        narrator.say(f"Defaulting container name to {name}.")
    elif may_be_joined(pod, name):
        return pod, name
    container = await container_for(cluster, request, pod, name, narrator)
    return await added(cluster, pod, container), name


async def container_for(
    cluster: Cluster, request: Request, pod: Pod, name: str, narrator: Narrator
) -> dict[str, Any]:
    """The container that is asked for, as the API takes it. Raises WishError, StatusError, OSError."""
    wish = request.wish
    if wish.root and not wish.target:
        wish = wish._replace(target=pod.spec.containers[0].name)
    if any(container.name == name for container in all_containers(pod)):
        raise WishError(
            f"container {name} of pod {request.pod} does not run, and its name cannot be used again:"
            " choose another with -c, or leave -c away"
        )
    check_target(pod, wish.target)
    allowed = await rights(cluster, request, pod, narrator)
    wish = wrapped(wish, target_id(pod, wish.target) if wish.root else "")
    container = document(name, wish, allowed.security_context)
    if wish.like_target or wish.root:
        spec = (await cluster.document(request.namespace, request.pod))["spec"]
        found: list[dict[str, Any]] = [*spec["containers"], *spec.get("initContainers", [])]
        target = next((one for one in found if one["name"] == wish.target), found[0])
        if wish.like_target:
            container = like(target, container)
        if wish.root:
            container = may_look(target, spec.get("securityContext", {}), container)
    return customized(container, dict(request.custom))


async def added(cluster: Cluster, pod: Pod, container: Mapping[str, Any]) -> Pod:
    """The pod with one more container, once the server would take it. Raises StatusError, OSError."""
    # What admission refuses shall not be tried on the pod.
    await cluster.add_container(pod.metadata.namespace, pod.metadata.name, container, dry_run=True)
    hold_signals()
    return await cluster.add_container(pod.metadata.namespace, pod.metadata.name, container)


async def rights(cluster: Cluster, request: Request, pod: Pod, narrator: Narrator) -> Rights:
    is_auto = request.profile == profiles.AUTO
    labels = await cluster.labels_of_namespace(request.namespace) if is_auto else {}
    found = profiles.rights(request.profile, pod, request.wish.target, labels.get(profiles.ENFORCE, ""))
    if found.given_up:
        narrator.say(f"Profile {found.profile}: {found.given_up}.")
    return found
