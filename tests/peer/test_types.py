"""R-SYS-8: every type has the fields of Kubernetes' own, in their order, with their protobuf numbers, and
writes the same ones when they are empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from api_types import every_kind, every_type
from peer.go_types import GoField, go_types
from podling.apiserver.paths.openapi.schemas import schema_name
from podling.apiserver.protobuf.wire import Numbered, numbered
from podling.model.errors import Status
from podling.model.scheme import MEASURED
from podling.model.types.admission import AdmissionReview
from podling.model.types.pod import PodDebugContainer

PODLINGS_OWN = frozenset({("PodStatus", "debugContainerStatuses"), ("Volume", "container")})
"""Fields of earlier designs, which wait behind feature gates (R-DBG-1, R-VOL-1)."""
NOT_KUBERNETES = {PodDebugContainer, AdmissionReview, Status, *(one.type for one in MEASURED)}
"""One of an earlier design behind its gate, and what is sent to others than clients;
what metrics-server serves is no part of kube-apiserver."""
FILLED_IN = frozenset(
    {
        # Defaulting sets them before anything is written.
        ("ContainerRestartRule", "action"),
        ("ContainerRestartRuleOnExitCodes", "operator"),
        ("ResourceFieldSelector", "divisor"),
    }
)
"""Whether they are written when empty cannot be seen."""
OF_TYPE_META = ("kind", "apiVersion")
META = "k8s.io/apimachinery/pkg"
STRUCTS = (f"{META}/apis/meta/v1.Time", f"{META}/apis/meta/v1.MicroTime", f"{META}/util/intstr.IntOrString")


@pytest.fixture(scope="session")
def theirs(kubernetes_programs: Path) -> Mapping[str, list[GoField]]:
    return go_types(kubernetes_programs / "kubernetes")


def test_every_type_has_the_fields_of_kubernetes(theirs: Mapping[str, list[GoField]]) -> None:
    found = {}
    for type_ in sorted(every_type(every_kind() - NOT_KUBERNETES), key=schema_name):
        if not msgspec.structs.fields(type_):
            continue  # Go keeps no fields of a struct that has none.
        name = go_name(schema_name(type_))
        expected, said = list(kubernetes_says(name, theirs)), list(podling_says(type_))
        if expected != said:
            found[name] = (expected, said)
    assert not found, "\n".join(
        f"{name}\n  kubernetes {[line for line in expected if line not in said] or expected}"
        f"\n  podling    {[line for line in said if line not in expected] or said}"
        for name, (expected, said) in found.items()
    )


def go_name(schema: str) -> str:
    """`k8s.io/api/core/v1.Pod` of `io.k8s.api.core.v1.Pod`."""
    _, _, *package, name = schema.split(".")
    return f"k8s.io/{'/'.join(package)}.{name}"


def kubernetes_says(name: str, theirs: Mapping[str, list[GoField]]) -> Iterator[str]:
    for field in flat(name, theirs):
        never_empty = field.type in theirs or field.type.startswith(STRUCTS)
        is_written = not field.left_out or (field.left_out == "empty" and never_empty)
        yield said_of(name.rpartition(".")[2], field.wire, field.number, is_written)


def flat(name: str, theirs: Mapping[str, list[GoField]]) -> Iterator[GoField]:
    """The fields with those of embedded structs in their place."""
    for field in theirs[name]:
        if field.wire in OF_TYPE_META:
            continue
        if field.wire:
            yield field
        elif not field.number:
            yield from flat(field.type, theirs)
        else:
            # A message of its own in protobuf: its numbers count within.
            yield from (
                inner._replace(number=field.number * 1000 + inner.number)
                for inner in flat(field.type.removeprefix("*"), theirs)
            )


def podling_says(type_: type[msgspec.Struct]) -> Iterator[str]:
    of_fields = dict(numbers_of(numbered(type_)))
    for field in msgspec.structs.fields(type_):
        wire = field.encode_name
        if wire in OF_TYPE_META or (type_.__name__, wire) in PODLINGS_OWN:
            continue
        yield said_of(type_.__name__, wire, of_fields.get(wire, 0), is_written_empty(field))


def numbers_of(fields: Mapping[int, Numbered]) -> Iterator[tuple[str, int]]:
    for number, known in fields.items():
        if known.field is not None:
            yield known.field.wire, number
        for wire, inner in numbers_of(known.inlined):
            yield wire, number * 1000 + inner


def said_of(type_name: str, wire: str, number: int, is_written: bool) -> str:
    shown = is_written and wire != "metadata" and (type_name, wire) not in FILLED_IN
    return f"{wire} {number}{' written' if shown else ''}"


def is_written_empty(field: Any) -> bool:
    factory = field.default_factory
    return factory is not msgspec.NODEFAULT and factory not in (list, dict)
