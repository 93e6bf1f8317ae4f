"""The same stories told to two API servers of podling, beside one of which run podling's controllers, beside
the other those of the kube-controller-manager.

A story is a list of steps in a namespace of its own. All stories go on together, step by step; after each
step both clusters are let come to rest, and what they have come to is kept as lines to be compared.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from peer import control_plane
from peer.sequence import MERGE_PATCH, make_namespace
from peer.server import Asking, Server, running
from ports import free_port

CORE, BATCH = "/api/v1/namespaces/{}", "/apis/batch/v1/namespaces/{}"
APPS = "/apis/apps/v1/namespaces/{}"
PATHS = {
    "pods": CORE,
    "persistentvolumeclaims": CORE,
    "jobs": BATCH,
    "cronjobs": BATCH,
    "statefulsets": APPS,
    "daemonsets": APPS,
    "controllerrevisions": APPS,
    "poddisruptionbudgets": "/apis/policy/v1/namespaces/{}",
    "volumeattachments": "/apis/storage.k8s.io/v1",
}
LOOKS, APART = 400, 0.1
"""At most, and seconds from one to the next."""
LOOKED_AT = 3
REST = 15
"""Looks in a row that must find nothing changed: some things Kubernetes does a second later."""
THOROUGH = 5
"""Looks from one at all objects to the next, if anything was written."""
KEPT_UP = 20
"""Looks from one time to the next that what is to be done for ever is done."""
COMBINED = "(combined from similar events)"
"""What kube-controller-manager tells in place of the eleventh event of a kind about an object."""
LAGS = re.compile("UnexpectedJob .*: tick-MINUTE|FailedDelete Deleted job: .* not found")
"""What kube-controller-manager tells of Jobs that it has made or deleted, when its informer lags."""
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+(Z|[+-]\d\d:\d\d)")
MINUTE = re.compile(r"\btick-\d{8}\b")
GENERATED = re.compile(r"\b(work+|hand|tick)((-\w+)?)-[bcdfghjklmnpqrstvwxz2456789]{5}\b")

Step = Callable[[Asking, str], None]


class Cluster(NamedTuple):
    server: Server
    asking: Asking
    controllers: subprocess.Popen[bytes]

    def revision(self) -> str:
        """Another one after each write of anybody."""
        version: str = self.asking.ask("GET", "/api/v1/pods?limit=1").body["metadata"]["resourceVersion"]
        return version


class Seen:
    """All objects of a cluster, each kind read once for all stories."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._lists: dict[str, list[dict[str, Any]]] = {}

    def every(self, plural: str) -> list[dict[str, Any]]:
        if plural not in self._lists:
            path = PATHS.get(plural, CORE).removesuffix("/namespaces/{}")
            self._lists[plural] = self._asking.ask("GET", f"{path}/{plural}").body["items"]
        return self._lists[plural]

    def of(self, ns: str, plural: str) -> list[dict[str, Any]]:
        return [one for one in self.every(plural) if one["metadata"]["namespace"] == ns]


Look = Callable[[Seen, str], list[str]]
"""The lines that describe a namespace."""


def nothing(asking: Asking) -> None: ...


class Told(NamedTuple):
    """Of one cluster: the lines after each step, and the events at the end."""

    steps: list[list[str]]
    events: list[str]


@contextmanager
def both_running(
    programs: Path,
    there: Path,
    here: Path,
    controllers: str,
    own: Mapping[str, str] = {},
    **both: str,
) -> Iterator[Sequence[Cluster]]:
    """Kubernetes' first. `controllers`: the names of those of kube-controller-manager that run. `own` are
    options of it alone, `both` also of podling's controllers."""
    flags = {
        "controllers": controllers,
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "secure-port": free_port(),
        "cert-dir": there,
        **own,
        **both,
    }
    commands: dict[Path, list[Any]] = {
        there: [programs / "kube-controller-manager", *(f"--{k}={v}" for k, v in flags.items())],
        here: [
            sys.executable,
            "-m",
            "podling",
            "controllers",
            "--secure-port=0",
            "--leader-elect=false",
            *(f"--{k}={v}" for k, v in both.items()),
        ],
    }
    with ExitStack() as stack:
        made = []
        for directory, command in commands.items():
            server = stack.enter_context(control_plane.podling(directory))
            asking = stack.enter_context(server.asking())
            whole = [str(one) for one in [*command, f"--kubeconfig={server.kubeconfig}"]]
            log = directory / "controllers.log"
            made.append(Cluster(server, asking, stack.enter_context(running(whole, log))))
        yield made


def lived(
    clusters: Sequence[Cluster],
    stories: Mapping[str, Sequence[Step]],
    look: Look | None = None,
    keep_up: Callable[[Asking], None] = nothing,
) -> list[dict[str, Told]]:
    """What became of each story in each cluster. `look`: what is compared, if not jobs and their pods.
    `keep_up` is done again and again meanwhile."""
    told = [{name: Told([], []) for name in stories} for _ in clusters]
    with ThreadPoolExecutor(len(clusters)) as together:

        def each(names: Iterable[str], steps: Callable[[str], Step]) -> None:
            def take(cluster: Cluster) -> None:
                for name in names:
                    steps(name)(cluster.asking, name)

            list(together.map(take, clusters))

        def settled(names: Iterable[str], look: Look) -> list[dict[str, list[str]]]:
            """What each cluster came to. Where they differ, one may have had no processor for as long as the
            rest that is waited for: both are looked at again, and a difference is one that stays."""
            for _ in range(LOOKED_AT):
                found = list(together.map(lambda one: _at_rest(one, names, look, keep_up), clusters))
                if not any(_differences(found[0][name], one[name]) for one in found[1:] for name in names):
                    break
            return found

        each(stories, lambda name: make_namespace)
        for number in range(max(map(len, stories.values()))):
            going = [name for name, steps in stories.items() if number < len(steps)]
            each(going, lambda name, number=number: stories[name][number])  # type: ignore[misc]
            for one, found in zip(told, settled(going, look or state), strict=True):
                for name in going:
                    one[name].steps.append(found[name])
        for one, found in zip(told, settled(stories, events), strict=True):
            for name in stories:
                one[name].events.extend(found[name])
    return told


def _at_rest(
    cluster: Cluster, names: Iterable[str], look: Look, keep_up: Callable[[Asking], None]
) -> dict[str, list[str]]:
    before, revision, same = {name: [""] for name in names}, "", 0
    for number in range(LOOKS):
        if number % KEPT_UP == 0:
            keep_up(cluster.asking)
        latest = cluster.revision()
        if latest == revision:
            same += 1
            if same == REST:
                break
        elif number % THOROUGH == 0:
            revision, seen = latest, Seen(cluster.asking)
            now = {name: look(seen, name) for name in names}
            same = same if now == before else 0
            before = now
        with suppress(subprocess.TimeoutExpired):
            cluster.controllers.wait(APART)
    return before


def unlike(theirs: Told, ours: Told) -> list[str]:
    """The first step after which they differ, or the events."""
    for number, (one, other) in enumerate(zip(theirs.steps, ours.steps, strict=True)):
        if found := _differences(one, other):
            return [f"step {number}", *found]
    if any(COMBINED in line for line in theirs.events):
        return []
    return _differences(theirs.events, ours.events)


def _differences(theirs: list[str], ours: list[str]) -> list[str]:
    one, other = Counter(theirs), Counter(ours)
    return [f"kubernetes: {line}" for line in one - other] + [f"podling:    {line}" for line in other - one]


def state(seen: Seen, ns: str) -> list[str]:
    """All objects, without what no two clusters have alike."""
    return [
        f"{plural} {line}"
        for plural in ("pods", "jobs", "cronjobs")
        for line in sorted(plain(one) for one in seen.of(ns, plural))
    ]


def events(seen: Seen, ns: str) -> list[str]:
    """Also those of its nodes."""
    told = [
        f"{one['involvedObject']['kind']} {one['involvedObject']['name']} {one['type']} "
        f"{one['reason']} {one['message']} by {one['source']['component']}"
        for one in seen.every("events")
        if one["metadata"]["namespace"] == ns or one["involvedObject"]["name"].startswith(f"{ns}-")
    ]
    return sorted(line for line in map(masked, told) if not LAGS.search(line))


def listed(asking: Asking, ns: str, plural: str) -> list[dict[str, Any]]:
    path = PATHS.get(plural, CORE).format(ns)
    items: list[dict[str, Any]] = asking.ask("GET", f"{path}/{plural}").body["items"]
    return items


def plain(one: dict[str, Any]) -> str:
    meta = one["metadata"]
    kept: dict[str, Any] = {
        **{key: meta.get(key) for key in ("name", "labels", "annotations", "generation", "ownerReferences")},
        **{key: meta.get(key) for key in ("finalizers", "generateName")},
        "deleted": "deletionTimestamp" in meta,
        **{key: one[key] for key in ("spec", "data", "revision") if key in one},
        "status": one.get("status"),
    }
    return masked(repr(_sorted(kept)))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def masked(text: str) -> str:
    text = MINUTE.sub("tick-MINUTE", UUID.sub("<uid>", TIME.sub("<time>", text)))
    text = re.sub(r"'resourceVersion': '\d+'", "'resourceVersion': '<version>'", text)
    # From the tenth on, and how often something was tried is a matter of time.
    text = text.replace("(combined from similar events): ", "")
    text = re.sub(r"kube-api-access-\w{5}", "kube-api-access-<suffix>", text)
    return GENERATED.sub(r"\1\2-<suffix>", text)


def sent(asking: Asking, method: str, target: str, body: Any, **headers: str) -> None:
    said = asking.ask(method, target, body, **headers)
    assert said.code < 300, said.body


def made(plural: str, spec: Mapping[str, Any], name: str = "work", **metadata: Any) -> Step:
    body = {"metadata": {"name": name, **metadata}, "spec": spec}
    return lambda asking, ns: sent(asking, "POST", f"{PATHS[plural].format(ns)}/{plural}", body)


def changed(plural: str, name: str = "work", **body: Any) -> Step:
    def step(asking: Asking, ns: str) -> None:
        target = f"{PATHS[plural].format(ns)}/{plural}/{name}"
        sent(asking, "PATCH", target, body, Content_Type=MERGE_PATCH)

    return step


def deleted(plural: str, name: str = "work", policy: str = "Background") -> Step:
    body = {"propagationPolicy": policy}
    return lambda asking, ns: sent(asking, "DELETE", f"{PATHS[plural].format(ns)}/{plural}/{name}", body)


def together(*steps: Step) -> Step:
    def step(asking: Asking, ns: str) -> None:
        for one in steps:
            one(asking, ns)

    return step
