"""The audit log's webhook: kube-apiserver's `--audit-webhook-config-file`. A batch is posted as an EventList;
it is lost if it is refused `TRIES` times, which the health check `log` tells.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import ClassVar

from podling.apiserver.observe.audit_batches import Batches, Batching
from podling.model.rules.audit_modes import BATCH
from podling.process.waits import woken

TRIES, FACTOR, JITTER = 5, 1.5, 0.2
OPENING, CLOSING = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[', b"]}"
LAST_SECONDS = 5.0
"""How long what is left may take at the end."""
FAILED = 300

Send = Callable[[bytes], Awaitable[int]]
"""Posts an EventList and returns the status of the answer. Raises OSError."""


class AuditWebhook(Batches):
    """Sends events with `send`; what fails is tried again after `backoff` seconds, and then more."""

    name = "webhook"
    COMPLAINT: ClassVar[str] = "the audit webhook takes no events"

    def __init__(self, send: Send, batching: Batching, backoff: float, mode: str = BATCH) -> None:
        super().__init__(batching, mode)
        self._send, self._backoff = send, backoff

    async def _deliver(self, batch: list[bytes]) -> str:
        body = b"".join((OPENING, b",".join(batch), CLOSING))
        delay, why = self._backoff, ""
        for attempt in range(TRIES):
            # At the end there is no time to try again.
            if attempt and await woken(self._closed, delay * (1 + random.random() * JITTER)):
                break
            delay *= FACTOR if attempt else 1
            try:
                code = await self._send(body)
            except OSError as error:
                why = str(error)
                continue
            if code < FAILED:
                return ""
            why = f"it answered {code}"
        return why


@asynccontextmanager
async def audit_webhook(
    send: Send, batching: Batching, backoff: float, mode: str = BATCH
) -> AsyncIterator[AuditWebhook]:
    """A webhook that is sent events while the block runs, and for a moment after it."""
    webhook = AuditWebhook(send, batching, backoff, mode)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(webhook.run())
        try:
            yield webhook
        finally:
            webhook.close()
            tasks.create_task(_ended(running))


async def _ended(running: asyncio.Task[None]) -> None:
    done, _ = await asyncio.wait([running], timeout=LAST_SECONDS)
    if not done:
        running.cancel()
