"""Events that are too long lose their bodies, and are lost if that is not enough, as in Kubernetes."""

from __future__ import annotations

import json

import pytest

from podling.apiserver.observe.audit_batches import Batching
from podling.apiserver.observe.audit_truncate import TRUNCATED, Truncating, truncated
from podling.apiserver.observe.audit_webhook import AuditWebhook

BODIES = {"requestObject": {"a": "x" * 500}, "responseObject": {"b": "y" * 500}}


def event(**more: object) -> bytes:
    return json.dumps({"kind": "Event", "auditID": "1", **more}, separators=(",", ":")).encode()


@pytest.mark.parametrize("notes", [{}, {"annotations": {"a": "b"}}])
def test_bodies_go_first(notes: dict[str, dict[str, str]]) -> None:
    whole = event(**BODIES, **notes)
    assert truncated(whole, len(whole)) == whole
    short = truncated(whole, len(whole) - 1)
    assert short is not None
    marked = {**notes.get("annotations", {}), TRUNCATED: "true"}
    assert json.loads(short) == {"kind": "Event", "auditID": "1", "annotations": marked}
    assert truncated(whole, len(short)) == short
    assert truncated(whole, len(short) - 1) is None


async def test_what_is_too_long_is_counted_as_lost() -> None:
    async def send(body: bytes) -> int:
        raise AssertionError("nothing runs")

    webhook = AuditWebhook(send, Batching(buffer_size=1), 0)
    sink = Truncating(webhook, 100)
    sink.write(event(userAgent="x" * 200))
    assert (sink.name, sink.full, sink.lost, sink.fault) == ("webhook", False, 1, "")
    sink.write(event(**BODIES))
    sink.write(event())
    assert sink.lost == 2, "one was too long, one found no room"
    assert sink.fault == webhook.fault != ""
    await sink.room()
