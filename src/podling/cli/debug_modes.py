"""What `podling debug` works on, and which of its options are about that: a table, so that none is taken and
does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

POD, COPY, HOLD, NODE, FLEET, STOP = "a pod", "a copy", "a held copy", "a node", "many pods", "--stop"
MODES = (POD, COPY, HOLD, NODE, FLEET, STOP)
_ONE = (POD, COPY, HOLD, NODE)
_RUNNING = (POD, FLEET)
_ALL = (*_ONE, FLEET)
_STOPS = "starts a container, and --stop ends one"
_COPIED = "is about a copy: give --copy-to, too"
_MANY = "is about many pods: give --selector or --all-namespaces, too"
_KEPT = "is about one pod: copies and pods on nodes are made one at a time"


class About(NamedTuple):
    """In which modes an option says something, and what to do in others."""

    modes: tuple[str, ...]
    why: str


OPTIONS = {
    "pod_option": About((*_ONE, STOP), "names one pod, and --selector many"),
    "filename": About((*_ONE, STOP), "names one pod, and --selector many"),
    "container": About(MODES, ""),
    "image": About(_ALL, _STOPS),
    "tools": About(_ALL, _STOPS),
    "env": About(_ALL, _STOPS),
    "pull": About(_ALL, _STOPS),
    "custom": About(_ALL, _STOPS),
    "profile": About(
        (POD, COPY, NODE, FLEET), "is about a container that is added: a held one keeps its rights"
    ),
    "arguments_only": About(
        (POD, COPY, NODE, FLEET), "is about a container that is added: a held one has a shell as its command"
    ),
    "target": About(
        _RUNNING, "is about a pod that runs: containers of a copy see each other, and a node's pod sees all"
    ),
    "like_target": About(
        _RUNNING, "is about a pod that runs: in a copy change the container itself, by -c NAME -m IMAGE"
    ),
    "root": About((*_RUNNING, NODE), "needs a container that runs: make the copy, then debug it with --root"),
    "stdin": About(_ONE, "is for one pod: nobody types into many"),
    "tty": About(_ONE, "is for one pod: nobody types into many"),
    "new": About(_ALL, _STOPS),
    "detach": About(_ONE, "is for one pod: of many the outputs are what is waited for"),
    "end_with_session": About((POD,), "is about a container in a pod: a pod of its own goes with --rm"),
    "idle_timeout": About((POD, NODE), "is about a container in a pod: a copy ends with --ttl"),
    "explain": About(_ONE, "shows one request: ask about one pod"),
    "record": About(_ONE, "is about a session: many pods have --save"),
    "record_input": About(_ONE, "is about a session: many pods have --save"),
    "stop": About((STOP,), "is for one pod: podling sessions lists what runs"),
    "copy_to": About((COPY, HOLD), "copies one pod, and no node"),
    "hold": About((HOLD,), "copies one pod, and no node"),
    "replace": About((COPY, HOLD), _COPIED),
    "images": About((COPY, HOLD), _COPIED),
    "same_node": About((COPY, HOLD), _COPIED),
    "remove": About((COPY, HOLD, NODE), _COPIED),
    "ttl": About((COPY, HOLD, NODE), _COPIED),
    # kubectl takes these for any one pod.
    "share_processes": About(_ONE, _KEPT),
    "keep_labels": About(_ONE, _KEPT),
    "keep_annotations": About(_ONE, _KEPT),
    "keep_liveness": About(_ONE, _KEPT),
    "keep_readiness": About(_ONE, _KEPT),
    "keep_startup": About(_ONE, _KEPT),
    "keep_init_containers": About(_ONE, _KEPT),
    "selector": About((FLEET,), _MANY),
    "all_namespaces": About((FLEET,), _MANY),
    "parallel": About((FLEET,), _MANY),
    "save": About((FLEET,), _MANY),
    "output": About((FLEET,), _MANY),
    "timeout": About(MODES, ""),
    "quiet": About(MODES, ""),
}
"""By the names of the command's parameters."""


def mode_of(*, is_fleet: bool, is_stop: bool, is_node: bool, is_held: bool, is_copy: bool) -> str:
    """What comes first counts."""
    asked = ((is_fleet, FLEET), (is_stop, STOP), (is_node, NODE), (is_held, HOLD), (is_copy, COPY))
    return next((mode for is_asked, mode in asked if is_asked), POD)


def refused(mode: str, given: Iterable[str]) -> tuple[str, str] | None:
    """The first of the given parameters that says nothing there, and what to do."""
    for name in given:
        about = OPTIONS.get(name)
        if about is not None and mode not in about.modes:
            return name, about.why
    return None
