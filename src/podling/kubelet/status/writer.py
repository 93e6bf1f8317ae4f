"""Writes one pod's status to the API server, in order; a status that is replaced before it was sent is never
sent.

The patch is the difference to what the server is known to have. So an unchanged status costs nothing, and
conditions of other owners (PodScheduled, readiness gates) are never touched. A part that the server refuses
as invalid is left out, so that it holds up neither the rest nor those who wait for `flushed`.

A starting pod changes with each call to the runtime, milliseconds apart. Such a status waits a little for the
next one: written one by one, they would cost more CPU than all else the kubelet does for the pod (decision
028).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Set
from typing import Any

from podling.client.client import Client
from podling.kubelet.pod.actions import BRINGS_UP, Action
from podling.kubelet.status.conditions import with_standing
from podling.kubelet.status.pod_status import PENDING
from podling.model.codec.json import to_data
from podling.model.errors import Cause, StatusError
from podling.model.types.pod import Pod
from podling.model.types.pod_status import PodStatus
from podling.process.waits import Backoff

STRATEGIC_MERGE = "application/strategic-merge-patch+json"

RETRY = Backoff(0.1, 10.0)
LONGEST_WAIT = 1.0
"""Seconds that what may wait is kept back: as long as Kubernetes' kubelet may take to notice it."""

INVALID = 422
REFUSED = (400, 403, 413, 415, INVALID)
"""Codes of answers that asking again does not change."""

_MERGED = {"conditions": "type", "hostIPs": "ip", "podIPs": "ip"}
"""The lists that the server merges, with the merge key of each."""
_STEP = re.compile(r"(\w+)(?:\[(\d+)])?")
"""One step of a field's path: its name, and the index into a list."""

log = logging.getLogger(__name__)


def status_patch(old: PodStatus, new: PodStatus, uid: str) -> dict[str, Any] | None:
    """The patch body with the pod's uid as precondition; None when there is nothing to say."""
    before, after = to_data(old), to_data(new)
    changed = {name: after.get(name) for name in {**before, **after} if before.get(name) != after.get(name)}
    if not changed:
        return None
    for name in changed.keys() & _MERGED.keys():
        key = _MERGED[name]
        had = {item[key]: item for item in before.get(name) or ()}
        has = {item[key]: item for item in after.get(name) or ()}
        # An item is merged into the one that is there: what it no longer has must be taken away by name.
        items = [
            {**dict.fromkeys(had.get(value, ())), **item}
            for value, item in has.items()
            if had.get(value) != item
        ]
        changed[name] = items + [{"$patch": "delete", key: value} for value in had if value not in has]
        changed[f"$setElementOrder/{name}"] = [{key: value} for value in has]
    return {"metadata": {"uid": uid}, "status": changed}


def without_refused(
    patch: dict[str, Any], known: PodStatus, causes: Iterable[Cause], *, whole: bool
) -> dict[str, Any] | None:
    """`patch` as `status_patch` made it, `known` what the server has. Of a list of containers only those the
    causes name are left as the server has them, unless the field is to be left out `whole`. None when nothing
    is left, or nothing of the patch was named.
    """
    has, changed = to_data(known), dict(patch["status"])
    for field, index in (step for cause in causes for step in _STEP.findall(cause.field)):
        if field not in changed:
            continue
        new, old = changed[field], has.get(field, [])
        kept: list[dict[str, Any]] = old
        if index and not whole:
            # A path counts in the old list or in the new one, whichever its rule looks at: both items are
            # left as the server has them, if the items of this list have names.
            names = [items[int(index)].get("name") for items in (old, new) if int(index) < len(items)]
            if None not in names:
                standing = {item["name"]: item for item in old}
                items = (standing.get(item["name"]) if item["name"] in names else item for item in new)
                kept = [item for item in items if item is not None]
        if kept == old:
            del changed[field]
            changed.pop(f"$setElementOrder/{field}", None)
        else:
            changed[field] = kept
    if not changed or changed == patch["status"]:
        return None
    return {**patch, "status": changed}


def may_coalesce(told: PodStatus, status: PodStatus, in_flight: Set[Action]) -> bool:
    """Whether `status`, which follows `told`, may wait for the outcome of what is in flight.

    The first word on a pod's containers is for those who wait for the kubelet to take the pod, and a new
    phase for everybody: neither waits. Nor does anything of a pod that has run, since traffic may depend on
    it.
    """
    coming_up = told.phase == status.phase == PENDING and bool(told.container_statuses)
    return coming_up and any(isinstance(action, BRINGS_UP) for action in in_flight)


class StatusWriter:
    """One task runs `run()`; `publish` never waits; `flushed()` returns when the server has the newest
    status, be it one that might wait, or has refused it."""

    def __init__(self, client: Client, pod: Pod | None) -> None:
        """`pod` is None while the server has no object to write to."""
        self._client = client
        self._known = pod
        self._wanted: PodStatus | None = None
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._patience: asyncio.TimerHandle | None = None

    def publish(self, status: PodStatus, *, may_wait: bool = False) -> None:
        """A status that `may_wait` is sent with the next one that may not, or after LONGEST_WAIT."""
        self._wanted = status
        self._idle.clear()
        if not may_wait:
            self._wake.set()
        elif self._patience is None:
            self._patience = asyncio.get_running_loop().call_later(LONGEST_WAIT, self._wake.set)

    def learn(self, pod: Pod) -> None:
        """The server has this object. An older one is ignored: a watch may lag behind the answers to
        writes."""
        known = self._known
        if known is None or known.metadata.uid != pod.metadata.uid:
            self._known = pod
            self._wake.set()
        elif _version(pod) >= _version(known):
            self._known = pod

    def lose(self) -> None:
        """The server has no object any more; a published status waits for a new one."""
        self._known = None

    async def flushed(self) -> None:
        if not self._idle.is_set():
            self._wake.set()
        await self._idle.wait()

    async def run(self) -> None:
        """Write what is published, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None
            await self._write()
            if not (self._wake.is_set() or self._patience):
                self._idle.set()

    async def _write(self) -> None:
        """Until the newest status is written; one that becomes newer meanwhile is taken up at the next
        try."""
        wait = RETRY.begin()
        while self._wanted is not None and self._known is not None:
            known = self._known
            wanted = with_standing(known.spec, known.status, self._wanted)
            patch = status_patch(known.status, wanted, known.metadata.uid)
            if patch is None:
                return
            self._wake.clear()
            try:
                answer = await self._send_what_is_taken(known, patch)
                # Meanwhile the object may have been lost, or replaced.
                if answer and self._known is not None and self._known.metadata.uid == known.metadata.uid:
                    self.learn(answer)
                return
            except StatusError as error:
                if error.code in (404, 409):
                    # The object is gone, or another pod has its name: there is nothing to publish to.
                    self._known = None if self._known is known else self._known
                    return
                log.warning("status of pod %s not written: %s", _name(known), error.message)
                if error.code in REFUSED and not self._wake.is_set():
                    self._idle.set()
            except OSError as error:
                log.warning("status of pod %s not written: %s", _name(known), error)
            await asyncio.sleep(wait.next())

    async def _send_what_is_taken(self, known: Pod, patch: dict[str, Any]) -> Pod | None:
        """What is invalid is left as the server has it: first the containers that are named, then the fields.
        It is not tried again before there is another status. None when nothing of the patch is taken."""
        name, namespace = known.metadata.name, known.metadata.namespace
        for whole in (False, True, True):
            try:
                return await self._client.patch(
                    Pod, name, namespace, patch, subresource="status", patch_type=STRATEGIC_MERGE
                )
            except StatusError as error:
                if error.code != INVALID:
                    raise
                log.warning("part of the status of pod %s not written: %s", _name(known), error.message)
                left = without_refused(patch, known.status, error.causes, whole=whole)
            if left is None:
                return None
            patch = left
        return None


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def _version(pod: Pod) -> int:
    """Resource versions are opaque to clients except that a server's own grow; others than numbers are
    equal."""
    version = pod.metadata.resource_version
    return int(version) if version.isdigit() else 0
