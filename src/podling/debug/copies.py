"""Pods of their own to debug in: a copy of a pod with something changed, and a pod in a node's namespaces.

They are made of the JSON that the server sent, so that fields of a newer Kubernetes are copied, too. What
kubectl 1.36 copies and leaves away is copied and left away here (`tests/peer/test_debug_copies.py`).
"""

from __future__ import annotations

import copy as copying
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from podling.debug.container import Wish, WishError, document
from podling.debug.profiles import Document, Rights

MANAGER = "app.kubernetes.io/managed-by"
DEBUGGED_IN = "podling.dev/debug-container"
"""Annotation of a pod that was made to debug in: the name of the container for that."""
PROBES = {"liveness": "livenessProbe", "readiness": "readinessProbe", "startup": "startupProbe"}
SERVERS_OWN = ("nodeName", "ephemeralContainers", "priority", "preemptionPolicy")
NODE_CONTAINER = "debugger"
GRACE = 1
"""Seconds that a pod on a node has to end when its time is up."""
SHELL = ("sh",)
ALL = "*"
STANDARDS = ("baseline", "restricted")
"""Profiles that leave a container nothing of its own rights, and a pod on a node nothing of the node."""
HOST = {"hostNetwork": True, "hostPID": True, "hostIPC": True}
FILES = {"name": "host-root", "hostPath": {"path": "/"}}
FILES_AT = "/host"
"""Where a pod on a node has the node's."""
KEYS = {"env": "name", "volumeMounts": "mountPath", "ports": "containerPort", "volumeDevices": "devicePath"}
"""List of a container → what tells its elements apart."""
NOT_CUSTOM = ("name", "command", "image", "lifecycle", "volumeDevices")


class Copy(NamedTuple):
    """What of the pod is kept, and how the copy differs. `images` are pairs of a container's name, or `*`,
    and an image."""

    name: str
    keep: frozenset[str] = frozenset()
    """Of labels, annotations, liveness, readiness, startup."""
    keep_init: bool = True
    same_node: bool = False
    share_processes: bool = True
    images: Sequence[tuple[str, str]] = ()
    ttl: int = 0
    """Seconds; 0 for no end."""


def copied(pod: Document, wish: Wish, container: str, rights: Rights, copy: Copy) -> Document:
    """The copy as the API takes it. `container` is changed if the pod has it, else added, unless only images
    change. Raises WishError."""
    source = copying.deepcopy(pod)
    metadata, spec = source["metadata"], source["spec"]
    kept = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    changes_more = bool(wish.image or wish.command)
    for key in SERVERS_OWN:
        if key != "nodeName" or not copy.same_node:
            spec.pop(key, None)
    if not changes_more and not copy.images:
        raise WishError("nothing would differ in the copy: give --image, --set-image or a command")
    _set_images(spec, copy.images)
    if changes_more:
        kept = {key: value for key, value in kept.items() if key in copy.keep}
        for each in spec["containers"]:
            for probe, field in PROBES.items():
                if probe not in copy.keep:
                    each.pop(field, None)
        if not copy.keep_init:
            spec.pop("initContainers", None)
        spec["shareProcessNamespace"] = copy.share_processes
        _change(spec, wish, container, rights)
    made = {"name": copy.name, "namespace": metadata["namespace"], **kept}
    return _marked({"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec}, container, copy.ttl)


def _change(spec: Document, wish: Wish, name: str, rights: Rights) -> None:
    found = next((each for each in _containers(spec) if each["name"] == name), None)
    if found is None:
        if not wish.image:
            raise WishError(f"the pod has no container {name}: give --image for a new one")
        spec["containers"].append(document(name, wish, rights.security_context))
        return
    asked = document(name, wish, rights.security_context)
    if "env" in asked:
        own = [one for one in found.get("env", []) if one["name"] not in dict(wish.env)]
        asked["env"] = [*own, *asked["env"]]
    own_context = found.pop("securityContext", {})
    if rights.profile not in STANDARDS:
        asked["securityContext"] = {**own_context, **rights.security_context}
    if wish.command and not wish.are_arguments:
        found.pop("args", None)
    found.update(asked)


def held(pod: Document, step: str, wish: Wish, copy: Copy) -> Document:
    """A copy whose init container `step` is a terminal for the wish's command, or a shell, in place of its
    own; all else stays that the wish does not name. Raises WishError."""
    steps = [each["name"] for each in pod["spec"].get("initContainers", [])]
    if step not in steps:
        raise WishError(f"the pod has no init container {step}: it has {', '.join(steps) or 'none'}")
    held_open = wish._replace(command=wish.command or SHELL, target="", stdin=True, tty=True)
    return copied(pod, held_open, step, Rights("", {}), copy)


def has_files(profile: str) -> bool:
    """Whether a pod on a node has the node's with this profile."""
    return profile not in (*STANDARDS, "netadmin")


def node_pod(
    node: str,
    namespace: str,
    name: str,
    container_name: str,
    wish: Wish,
    profile: str,
    rights: Mapping[str, Any],
    ttl: int,
) -> Document:
    """A pod on a node; but for the profiles baseline and restricted in its namespaces, with its files."""
    container = document(container_name, wish, rights)
    spec: Document = {"nodeName": node, "restartPolicy": "Never", "tolerations": [{"operator": "Exists"}]}
    if profile not in STANDARDS:
        spec |= HOST
        if has_files(profile):
            spec["volumes"] = [FILES]
            container["volumeMounts"] = [{"name": FILES["name"], "mountPath": FILES_AT}]
    if ttl:
        # A shell does not heed what asks it to end, and would be there for half a minute more.
        spec["terminationGracePeriodSeconds"] = GRACE
    metadata = {"name": name, "namespace": namespace, "labels": {MANAGER: "podling-debug"}}
    whole = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec | {"containers": [container]},
    }
    return _marked(whole, container_name, ttl)


def _marked(pod: Document, container: str, ttl: int) -> Document:
    """As one to debug in. The kubelet ends it, also when nobody is there any more to ask for that."""
    pod["metadata"].setdefault("annotations", {})[DEBUGGED_IN] = container
    if ttl:
        pod["spec"]["activeDeadlineSeconds"] = ttl
    return pod


def _containers(spec: Document) -> Iterator[Document]:
    yield from spec["containers"]
    yield from spec.get("initContainers", [])


def _set_images(spec: Document, images: Sequence[tuple[str, str]]) -> None:
    wanted = dict(images)
    names = {each["name"] for each in _containers(spec)}
    for name in wanted:
        if name != ALL and name not in names:
            raise WishError(
                f'--set-image: the pod has no container "{name}": it has {", ".join(sorted(names))}'
            )
    for each in spec["containers"] if ALL in wanted else _containers(spec):
        if image := wanted.get(each["name"], wanted.get(ALL)):
            each["image"] = image


def customized(container: Document, partial: Document) -> Document:
    """The container with what a user's file says of it, merged as a strategic merge patch does. Raises
    WishError."""
    for field in NOT_CUSTOM:
        if field in partial:
            raise WishError(f"--custom: {field} cannot be changed so: {', '.join(NOT_CUSTOM)} have options")
    return _merged(container, partial)


def _merged(into: Document, partial: Document) -> Document:
    made = dict(into)
    for field, value in partial.items():
        there = made.get(field)
        if value is None:
            made.pop(field, None)
        elif isinstance(value, dict) and isinstance(there, dict):
            made[field] = _merged(there, value)
        elif field in KEYS and isinstance(there, list):
            key = KEYS[field]
            olds = {one[key]: one for one in there}
            asked = [_merged(olds.pop(one.get(key), {}), one) for one in value]
            made[field] = [*asked, *olds.values()]
        else:
            made[field] = value
    return made
