"""R-SYS-8: the name of an object and what it is to begin with are judged as by Kubernetes, of every kind and
of all its parts, in new objects and in changed ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from peer.every_kind import Sample, removal, samples
from peer.named_differences import unnamed
from peer.sequence import JSON_PATCH, MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server
from peer.test_verbs_of_every_kind import BY_RESOURCE
from podling.apiserver.kinds.kind import Connect, Posted

BEGINNINGS = (
    "x-", "X-", "XX-", "-", "--", "x.", "x.-", "..", "a/b", "a/-", "%", "x" * 60, "x" * 63 + "-",
    "x" * 253 + "-", "x" * 254,
)  # fmt: skip
"""Of names that are given as well: good ones, bad ones, and bad ones that Kubernetes takes for good."""
MADE = ("generated-", "Generated.generated-", "a/generated-", "%generated-", "..generated-")
"""Of names that the server makes."""
NAMES = ("X", "a/b", "..", "%", "a.b", "a:b", "x" * 64, "x" * 254)
OWN = "q"
"""The letter of the objects that are changed: no other test's, one of which might leave its own behind."""
SAMPLES = samples()


def asked(sample: Sample) -> Iterator[Ask]:
    dry = f"{sample.items}?dryRun=All"
    for name in NAMES:
        yield Ask("POST", dry, sample.body(name=name))
    for beginning in BEGINNINGS:
        yield Ask("POST", dry, sample.body(generateName=beginning))
    for beginning in MADE:
        yield Ask("POST", dry, sample.body(name=None, generateName=beginning))
    yield Ask("POST", sample.items, sample.body(OWN))
    version = f"${len(NAMES) + len(BEGINNINGS) + len(MADE)}.metadata.resourceVersion"
    for target, body in _parts(sample):
        for beginning in BEGINNINGS:
            metadata = {**body["metadata"], "generateName": beginning, "resourceVersion": version}
            yield Ask("PUT", f"{target}?dryRun=All", {**body, "metadata": metadata})
        for sort, patch in (
            (MERGE_PATCH, {"metadata": {"generateName": "XX/"}}),
            (JSON_PATCH, [{"op": "add", "path": "/metadata/generateName", "value": "XX/"}]),
        ):
            yield Ask("PATCH", f"{target}?dryRun=All", patch, {"Content_Type": sort})
    yield from removal(sample, OWN)


def _parts(sample: Sample) -> Iterator[tuple[str, dict[str, Any]]]:
    """What of the object is written, and as what."""
    yield sample.item(OWN), sample.body(OWN)
    for name, part in BY_RESOURCE[sample.resource].subresources.items():
        body = sample.body(OWN)
        if name == "scale":
            body = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": body["metadata"], "spec": {}}
        if not isinstance(part, (Connect, Posted)):
            yield f"{sample.item(OWN)}/{name}", body


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_names_are_judged_as_by_kubernetes(sample: Sample, kubernetes: Server, podling: Server) -> None:
    sequence = Compared(sample.name, list(asked(sample)), apart=True)
    found = unnamed(differences(sequence, f"names-{SAMPLES.index(sample)}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
