"""R-SYS-1: bodies as Go clients send them."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_types import every_kind, every_type
from podling.apiserver.protobuf.wire import MAGIC, decode, encode_bytes, encode_text, encode_varint, numbers
from podling.model.codec import json
from podling.model.codec.fields import fields_of
from podling.model.errors import Status, StatusError
from podling.model.scheme import MEASURED
from podling.model.types.admission import AdmissionReview
from podling.model.types.apps import ControllerRevision
from podling.model.types.authorization import SubjectAccessReview
from podling.model.types.coordination import Lease
from podling.model.types.core import Namespace, Secret
from podling.model.types.pod import Pod, PodDebugContainer
from podling.model.types.policy import PodDisruptionBudget

# What `kubectl create namespace shop` of version 1.32 sends.
NAMESPACE = bytes.fromhex(
    "6b3873000a0f0a02763112094e616d657370616365121c0a140a0473686f7012001a00"
    "22002a0032003800420012001a020a001a002200"
)


def message(*parts: tuple[int, Any]) -> bytes:
    """Fields of text, bytes (a nested message), or a number."""
    out = b""
    for number, value in parts:
        if isinstance(value, int):
            out += encode_varint(number << 3) + encode_varint(value)
        else:
            out += encode_bytes(number, value.encode() if isinstance(value, str) else value)
    return out


def body(kind: str, raw: bytes, version: str = "v1") -> bytes:
    return b"k8s\0" + message((1, message((1, version), (2, kind))), (2, raw))


def test_what_kubectl_sends() -> None:
    data = decode(NAMESPACE, Namespace)
    assert (data["kind"], data["apiVersion"]) == ("Namespace", "v1")
    assert data["metadata"]["name"] == "shop"


def test_maps_and_bytes() -> None:
    entry = message((1, "key"), (2, b"\x00\xff"))
    data = decode(body("Secret", message((1, message((1, "s"))), (2, entry), (3, "Opaque"))), Secret)
    assert data["data"] == {"key": "AP8="} and data["type"] == "Opaque"


def test_an_object_of_any_kind_is_json_in_its_message() -> None:
    revision = message((2, message((1, b'{"spec":{"a":[1]}}'))), (3, 7))
    data = decode(body("ControllerRevision", revision, "apps/v1"), ControllerRevision)
    obj = json.decode(msgspec.json.encode(data), ControllerRevision)
    assert (obj.data, obj.revision) == ({"spec": {"a": [1]}}, 7)


def test_times() -> None:
    spec = message((1, "me"), (3, message((1, 1), (2, 0))), (4, b""))
    data = decode(body("Lease", message((2, spec)), "coordination.k8s.io/v1"), Lease)
    assert data["spec"] == {
        "holderIdentity": "me",
        "acquireTime": "1970-01-01T00:00:01.000000Z",
        "renewTime": None,
    }


def test_what_go_embeds_stands_in_the_type_itself() -> None:
    volume = message((1, "v"), (2, message((1, message((1, "/host"))))))
    debug = message((1, message((1, "debugger"), (2, "busybox"))), (2, "app"))
    probe = message((1, message((3, message((1, message((1, 0), (2, 80))))))), (2, 5))
    app = message((1, "app"), (10, probe))
    data = decode(body("Pod", message((2, message((1, volume), (2, app), (34, debug))))), Pod)
    assert data["spec"] == {
        "volumes": [{"name": "v", "hostPath": {"path": "/host"}}],
        "containers": [
            {"name": "app", "livenessProbe": {"tcpSocket": {"port": 80}, "initialDelaySeconds": 5}}
        ],
        "ephemeralContainers": [{"name": "debugger", "image": "busybox", "targetContainerName": "app"}],
    }


def test_quantities_and_ports_by_name() -> None:
    limits = message((1, message((1, "cpu"), (2, message((1, "100m"))))))
    probe = message((1, message((3, message((1, message((1, 1), (3, "http"))))))))
    app = message((8, limits), (10, probe))
    (container,) = decode(body("Pod", message((2, message((2, app))))), Pod)["spec"]["containers"]
    assert container["resources"] == {"limits": {"cpu": "100m"}}
    assert container["livenessProbe"]["tcpSocket"]["port"] == "http"


def test_lists_inside_maps() -> None:
    entry = message((1, "scopes"), (2, message((1, "a"), (1, "b"))))
    spec = message((3, "eve"), (5, entry))
    data = decode(body("SubjectAccessReview", message((2, spec))), SubjectAccessReview)
    assert data["spec"] == {"user": "eve", "extra": {"scopes": ["a", "b"]}}


def test_numbers_below_zero() -> None:
    spec = message((25, 2**64 - 5))
    assert decode(body("Pod", message((2, spec))), Pod)["spec"] == {"priority": -5}


def test_fields_of_later_versions_are_dropped() -> None:
    assert "x" not in str(decode(body("Namespace", message((120, "x"), (1, message((1, "a"))))), Namespace))


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"k8s\0\x12", body("Namespace", b"\x0a\x05x"), body("Namespace", message((1, 5)))],
)
def test_what_is_no_object(data: bytes) -> None:
    with pytest.raises(StatusError) as raised:
        decode(data, Namespace)
    assert raised.value.code == 400


@given(st.binary(max_size=80))
def test_only_a_status_escapes(raw: bytes) -> None:
    try:
        decode(body("Pod", raw)[: 14 + len(raw)], Pod)
    except StatusError as error:
        assert error.code == 400


def test_every_type_that_can_be_sent_has_numbers() -> None:
    """And every name in the table is a field of its type."""
    measured = {resource.type for resource in MEASURED}
    types = every_type(every_kind() - {PodDebugContainer, AdmissionReview, Status} - measured)
    for type_ in types:
        assert {
            word for word in re.findall(r"[^ ()]+", numbers()[type_.__name__]) if not word.isdecimal()
        } <= fields_of(type_).keys(), type_
    assert {type_.__name__ for type_ in types} == numbers().keys()


def test_a_map_of_times() -> None:
    """What kube-apiserver stores of a budget with an eviction that is not yet confirmed."""
    time = encode_varint(1 << 3) + encode_varint(1_700_000_000)
    taken = encode_bytes(2, encode_text(1, "p") + encode_bytes(2, time))
    sent = encode_text(1, "policy/v1") + encode_text(2, "PodDisruptionBudget")
    body = MAGIC + encode_bytes(1, sent) + encode_bytes(2, encode_bytes(3, taken))
    assert decode(body, PodDisruptionBudget)["status"] == {"disruptedPods": {"p": "2023-11-14T22:13:20Z"}}
