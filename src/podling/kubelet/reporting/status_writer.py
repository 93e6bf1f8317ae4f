"""Publishes one pod's status: the newest wins, writes are in order, and nothing waits for them.

A status that is replaced before it was sent is never sent; one that is about to be replaced waits for that, a
little. What is patched is the difference to what the server is known to have, so that an unchanged status
costs nothing and what others own is left alone. What the server refuses for good holds up neither the rest of
the status nor whoever waits for it to be written.
"""

from __future__ import annotations

import asyncio
import logging

from podling.client.client import Client
from podling.kubelet.reporting.refused_status import without_refused
from podling.kubelet.reporting.standing_status import with_standing
from podling.kubelet.reporting.status_patch import STRATEGIC_MERGE, status_patch
from podling.model.errors import StatusError
from podling.model.growing_wait import GrowingWait
from podling.model.pod import Pod
from podling.model.pod_status import PodStatus

FIRST_RETRY = 0.1
LONGEST_RETRY = 10.0
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
        """What may wait is sent with the next status that may not."""
        self._wanted = status
        self._idle.clear()
        if not may_wait:
            self._wake.set()
        elif self._patience is None:
            self._patience = asyncio.get_running_loop().call_later(LONGEST_WAIT, self._wake.set)

    def learn(self, pod: Pod) -> None:
        """What the server has now. An answer to a later write of ours is newer than what a watch still
        brings."""
        known = self._known
        if known is None or known.metadata.uid != pod.metadata.uid:
            self._known = pod
            self._wake.set()
        elif _version(pod) >= _version(known):
            self._known = pod

    def lose(self) -> None:
        """The server has no object any more; what is published waits for another."""
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
        wait = GrowingWait(FIRST_RETRY, LONGEST_RETRY)
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
