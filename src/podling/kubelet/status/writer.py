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
from podling.kubelet.status.pod_status import PENDING
from podling.kubelet.status.standing import with_standing
from podling.model.codec.json import to_data
from podling.model.errors import Cause, StatusError
from podling.model.types.pod import Pod
from podling.model.types.pod_status import PodStatus
from podling.process.backoff import Backoff

STRATEGIC_MERGE = "application/strategic-merge-patch+json"

_MERGED = {"conditions": "type", "hostIPs": "ip", "podIPs": "ip"}


def status_patch(old: PodStatus, new: PodStatus, uid: str) -> dict[str, Any] | None:
    """The patch body with the pod's uid as precondition; None when there is nothing to say."""
    before, after = to_data(old), to_data(new)
    changed = {
        name: _change(name, before.get(name), after.get(name))
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    }
    if not changed:
        return None
    for name in changed.keys() & _MERGED.keys():
        changed[f"$setElementOrder/{name}"] = [
            {_MERGED[name]: item[_MERGED[name]]} for item in after.get(name, ())
        ]
    return {"metadata": {"uid": uid}, "status": changed}


def _change(name: str, before: Any, after: Any) -> Any:
    key = _MERGED.get(name)
    if key is None:
        return after
    old = {item[key]: item for item in before or ()}
    new = {item[key]: item for item in after or ()}
    gone = [{"$patch": "delete", key: value} for value in old if value not in new]
    return [_item(old.get(value, {}), item) for value, item in new.items() if old.get(value) != item] + gone


def _item(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Merged into the item that is there: what it no longer has must be taken away by name."""
    return {**dict.fromkeys(before), **after}


_STEP = re.compile(r"(\w+)(?:\[(\d+)])?")


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
        kept = None if whole or not index else _with_standing(changed[field], has.get(field, []), int(index))
        if kept is None or kept == has.get(field, []):
            del changed[field]
            changed.pop(f"$setElementOrder/{field}", None)
        else:
            changed[field] = kept
    if not changed or changed == patch["status"]:
        return None
    return {**patch, "status": changed}


def _with_standing(
    new: list[dict[str, Any]], old: list[dict[str, Any]], index: int
) -> list[dict[str, Any]] | None:
    """A path counts in the old list or in the new one, whichever its rule looks at: both items are left. None
    where items have no names."""
    names = [items[index].get("name") for items in (old, new) if index < len(items)]
    if None in names:
        return None
    standing = {item["name"]: item for item in old}
    kept = [standing.get(item["name"]) if item["name"] in names else item for item in new]
    return [item for item in kept if item is not None]


def may_coalesce(told: PodStatus, status: PodStatus, in_flight: Set[Action]) -> bool:
    """Whether `status`, which follows `told`, may wait for the outcome of what is in flight.

    The first word on a pod's containers is for those who wait for the kubelet to take the pod, and a new
    phase for everybody: neither waits. Nor does anything of a pod that has run, since traffic may depend on
    it.
    """
    coming_up = told.phase == status.phase == PENDING and bool(told.container_statuses)
    return coming_up and any(isinstance(action, BRINGS_UP) for action in in_flight)


RETRY = Backoff(0.1, 10.0)
LONGEST_WAIT = 1.0
"""Seconds that what may wait is kept back: as long as Kubernetes' kubelet may take to notice it."""

INVALID = 422
REFUSED = (400, 403, 413, 415, INVALID)
"""Codes of answers that asking again does not change."""

log = logging.getLogger(__name__)


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
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._lose_patience()
            await self._write()
            if not (self._wake.is_set() or self._patience):
                self._idle.set()

    def _lose_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

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
                if answer := await self._send_what_is_taken(known, patch):
                    self._written(known, answer)
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

    async def _send_what_is_taken(self, known: Pod, patch: dict[str, object]) -> Pod | None:
        """What is invalid is left as the server has it: first the containers that are named, then the fields.
        It is not tried again before there is another status. None when nothing of the patch is taken."""
        left: dict[str, object] | None = patch
        for whole in (False, True, True):
            try:
                return await self._send(known, left) if left else None
            except StatusError as error:
                if error.code != INVALID:
                    raise
                log.warning("part of the status of pod %s not written: %s", _name(known), error.message)
                left = without_refused(left or {}, known.status, error.causes, whole=whole)
        return None

    async def _send(self, known: Pod, patch: dict[str, object]) -> Pod:
        meta = known.metadata
        return await self._client.patch(
            Pod, meta.name, meta.namespace, patch, subresource="status", patch_type=STRATEGIC_MERGE
        )

    def _written(self, known: Pod, answer: Pod) -> None:
        """Meanwhile the object may have been lost, or replaced."""
        if self._known is not None and self._known.metadata.uid == known.metadata.uid:
            self.learn(answer)


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def _version(pod: Pod) -> int:
    """Resource versions are opaque to clients except that a server's own grow; others than numbers are
    equal."""
    version = pod.metadata.resource_version
    return int(version) if version.isdigit() else 0
