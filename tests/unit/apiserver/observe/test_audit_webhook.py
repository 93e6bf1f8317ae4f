"""Issue 13, audit: a webhook gets events in batches, is tried again, and holds nobody up."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import pytest

from podling.apiserver.observe import audit_batches
from podling.apiserver.observe import audit_webhook as module
from podling.apiserver.observe.audit_batches import Batching
from podling.apiserver.observe.audit_webhook import TRIES, AuditWebhook, audit_webhook

SOON = Batching(buffer_size=10_000, max_size=400)


class Receiver:
    """Answers with these codes, the last one again and again; an error is raised."""

    def __init__(self, *answers: int | OSError) -> None:
        self.answers = list(answers)
        self.bodies: list[Any] = []
        self.heard = asyncio.Event()

    async def __call__(self, body: bytes) -> int:
        self.bodies.append(json.loads(body))
        self.heard.set()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, OSError):
            raise answer
        return answer


async def test_events_are_sent_as_lists_in_order() -> None:
    receiver = Receiver(200)
    async with audit_webhook(receiver, SOON._replace(max_size=2), 0) as webhook:
        for number in range(5):
            webhook.write(b'{"auditID":"%d"}' % number)
    heads = {(body["kind"], body["apiVersion"]) for body in receiver.bodies}
    assert heads == {("EventList", "audit.k8s.io/v1")}
    assert [[event["auditID"] for event in body["items"]] for body in receiver.bodies] == [
        ["0", "1"], ["2", "3"], ["4"],
    ]  # fmt: skip
    assert (webhook.lost, webhook.fault) == (0, "")


async def test_a_batch_waits_for_more_until_it_is_full() -> None:
    receiver = Receiver(200)
    async with audit_webhook(receiver, Batching(10, 2, 1000), 0) as webhook:
        webhook.write(b"1")
        await asyncio.sleep(0)
        assert not receiver.bodies
        webhook.write(b"2")
        await receiver.heard.wait()
    assert [body["items"] for body in receiver.bodies] == [[1, 2]]


async def test_a_failure_is_tried_again() -> None:
    receiver = Receiver(OSError("refused"), 500, 200)
    async with audit_webhook(receiver, SOON, 0) as webhook:
        webhook.write(b"1")
        while len(receiver.bodies) < 3:
            receiver.heard.clear()
            await receiver.heard.wait()
    assert [body["items"] for body in receiver.bodies] == [[1]] * 3
    assert (webhook.lost, webhook.fault) == (0, "")


async def test_what_is_refused_again_and_again_is_lost_and_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    receiver = Receiver(500)
    webhook = AuditWebhook(receiver, SOON, 0)
    for _ in range(2):
        webhook.write(b"1")
        webhook.write(b"2")
        await webhook.deliver_next()
    assert (len(receiver.bodies), webhook.lost, webhook.fault) == (2 * TRIES, 4, "it answered 500")
    assert caplog.text.count("takes no events") == 1
    receiver.answers = [200]
    webhook.write(b"3")
    await webhook.deliver_next()
    assert (webhook.lost, webhook.fault) == (4, "")


async def test_what_does_not_fit_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    webhook = AuditWebhook(Receiver(200), SOON._replace(buffer_size=2), 0)
    for _ in range(3):
        webhook.write(b"1")
    assert webhook.lost == 1 and not webhook.full
    monkeypatch.setattr(audit_batches, "FULL_BYTES", 10)
    many = AuditWebhook(Receiver(200), SOON, 0)
    for _ in range(3):
        many.write(b"12345678")
    assert many.lost == 1


async def test_one_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_SECONDS", 0.01)
    asked = asyncio.Event()

    async def hang(body: bytes) -> int:
        asked.set()
        await asyncio.Event().wait()
        return 200

    async with asyncio.timeout(10), audit_webhook(hang, SOON, 0) as webhook:
        webhook.write(b"1")
        await asked.wait()


async def test_a_batch_has_so_many_bytes_and_one_event_at_least() -> None:
    receiver = Receiver(200)
    async with audit_webhook(receiver, SOON._replace(max_bytes=4), 0) as webhook:
        for event in (b"11", b"22", b"333", b"444444", b"5"):
            webhook.write(event)
    assert [body["items"] for body in receiver.bodies] == [[11, 22], [333], [444444], [5]]


async def test_batches_that_are_not_throttled_wait_for_nothing() -> None:
    receiver = Receiver(200)
    async with audit_webhook(receiver, SOON._replace(max_size=1, burst=1, qps=math.inf), 0) as webhook:
        for number in range(50):
            webhook.write(b"%d" % number)
        while len(receiver.bodies) < 50:
            receiver.heard.clear()
            await receiver.heard.wait()
    assert webhook.lost == 0
