"""R-SYS-8: every field of an object's metadata is judged alike for all kinds, however it is written: as it is
made, changed, applied, or written with the status; and while it is being deleted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from peer.every_kind import Sample, removal, samples
from peer.fields import variations
from peer.named_differences import unnamed
from peer.sequence import APPLY, MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server
from podling.model.codec.fields import fields_of

HELD = ["peer.test/keep"]
MERGED, APPLIED = {"Content_Type": MERGE_PATCH}, {"Content_Type": APPLY}
WAYS = ("created", "put", "patched", "applied", "with the status")
WHOLE = ("ConfigMap", "Namespace", "Job")
"""The kinds of which all is tried, and while they are being deleted; of the others every eleventh."""


def asked(sample: Sample, way: str, *, dying: bool = False) -> Iterator[Ask]:
    base = sample.body(finalizers=HELD) if dying else sample.body()
    item, every = sample.item(), 1 if sample.resource.kind in WHOLE else 11
    identity = {"apiVersion": sample.resource.api_version, "kind": sample.resource.kind}
    changes = [one for one in variations(sample.resource.type, base) if one[0].startswith("metadata")]
    if way != "created":
        yield Ask("POST", sample.items, base)
    if dying:
        yield Ask("DELETE", f"{item}?propagationPolicy=Background")
    for path, value, body in changes[::every]:
        what, meta = f"{path} = {value!r:.200}", {"metadata": body.get("metadata")}
        part = "/status" if way == "with the status" else ""
        if way == "created":
            yield Ask("POST", f"{sample.items}?dryRun=All", body, what=what)
        if way in ("put", "with the status"):
            yield Ask("PUT", f"{item}{part}?dryRun=All", body, what=what)
        if way in ("patched", "with the status"):
            yield Ask("PATCH", f"{item}{part}?dryRun=All", meta, MERGED, what)
        # An entry of nobody in a list that is not looked at counts as a change to Kubernetes.
        if way in ("applied", "with the status") and value != [None]:
            target = f"{item}{part}?dryRun=All&fieldManager=two&force=true"
            yield Ask("PATCH", target, {**identity, **meta}, APPLIED, what)
    if dying:
        yield Ask("PATCH", item, {"metadata": {"finalizers": None}}, MERGED)
    elif way != "created":
        yield from removal(sample)


SEQUENCES = [
    *(
        Compared(f"{sample.name} {way}", list(asked(sample, way)), apart=True)
        for sample in samples()
        for way in WAYS
        if way != "with the status" or "status" in fields_of(sample.resource.type)
    ),
    *(
        Compared(f"{sample.name} {way} as it goes", list(asked(sample, way, dying=True)), apart=True)
        for sample in samples()
        for way in WAYS[1:4]
        if sample.resource.kind in WHOLE
    ),
]


@pytest.mark.usefixtures("no_ranges_left")
@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_metadata(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(sequence, f"metadata-{SEQUENCES.index(sequence)}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
