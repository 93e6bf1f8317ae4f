"""R-SYS-8: of what kind and version a body says that it is, for every kind and every way to write it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from peer.every_kind import Sample, removal, samples
from peer.named_differences import unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server
from podling.model.codec.fields import fields_of

GONE = object()
KINDS = (GONE, None, "", "a", "Pod", "pod", "List", "Status", 1)
VERSIONS = (
    GONE,
    None,
    "",
    "a",
    "v1",
    "v2",
    "apps/v1",
    "a/b/c",
    "/v1",
    "apps/",
    "/",
    "meta.k8s.io/v1",
    1,
    True,
)
IN_PLACE_OF_OTHERS = ("v1", "/v1")
"""What Kubernetes converts an Event from."""


def asked(sample: Sample) -> Iterator[Ask]:
    kind, version, item = sample.resource.kind, sample.resource.api_version, sample.item()
    whole = {"kind": kind, "apiVersion": version, **sample.body()}
    parts = ("", "/status") if "status" in fields_of(sample.resource.type) else ("",)
    yield Ask("POST", sample.items, sample.body())
    for field, value in (*(("kind", one) for one in KINDS), *(("apiVersion", one) for one in VERSIONS)):
        if sample.resource.qualified.startswith("events.") and value in IN_PLACE_OF_OTHERS:
            continue
        what = f"{field} {value!r:.20}"
        said: Any = {} if value is GONE else {field: value}
        body = {name: part for name, part in {**whole, field: value}.items() if part is not GONE}
        other = {**body, "metadata": {**body["metadata"], "name": sample.called("y")}}
        yield Ask("POST", f"{sample.items}?dryRun=All", other, what=what)
        for part in parts:
            target = f"{item}{part}?dryRun=All"
            yield Ask("PUT", target, body, what=what)
            if said:
                patch = [{"op": "replace", "path": f"/{field}", "value": value}]
                yield Ask("PATCH", target, said, {"Content_Type": MERGE_PATCH}, what)
                yield Ask("PATCH", target, said, {"Content_Type": STRATEGIC_PATCH}, what)
                yield Ask("PATCH", target, patch, {"Content_Type": JSON_PATCH}, what)
            # What is not said as it is kept counts as a change to Kubernetes.
            if value != "/v1":
                identity = {name: body[name] for name in ("kind", "apiVersion", "metadata") if name in body}
                applied = f"{target}&fieldManager=a&force=true"
                yield Ask("PATCH", applied, identity, {"Content_Type": APPLY}, what)
        yield Ask("DELETE", item, {"dryRun": ["All"], **said}, what=what)
    yield from removal(sample)


SEQUENCES = [Compared(sample.name, list(asked(sample)), apart=True) for sample in samples()]


@pytest.mark.usefixtures("no_ranges_left")
@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_type_meta(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(sequence, f"types-{SEQUENCES.index(sequence)}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
