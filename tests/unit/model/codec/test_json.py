"""JSON of the API types: what Go would accept is accepted, what it would refuse is refused in its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.model.codec import json
from podling.model.codec.fields import told_empty
from podling.model.errors import StatusError
from podling.model.quantity import Quantity
from podling.model.types.apiextensions import JSONSchemaProps
from podling.model.types.container import Container, ResourceRequirements
from podling.model.types.core import ConfigMap, Secret
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodSpec


def pod(text: str) -> Pod:
    return json.decode(text.encode(), Pod)


def test_an_object_begins_with_kind_version_and_metadata() -> None:
    """The reader of stored bytes puts the resourceVersion right after `"metadata":{`."""
    assert (
        json.encode(Pod())
        == b'{"kind":"Pod","apiVersion":"v1","metadata":{},"spec":{"containers":[]},"status":{}}'
    )


def test_unknown_fields_are_dropped() -> None:
    assert pod('{"spec":{"nodeName":"a","novelty":{"x":[1]}}}').spec == PodSpec(node_name="a")


def test_maps_are_written_with_sorted_keys() -> None:
    one = ConfigMap(data={"b": "1", "a": "2"})
    assert json.encode(one) == json.encode(ConfigMap(data={"a": "2", "b": "1"}))


def test_quantities_come_out_canonical() -> None:
    container = json.decode(b'{"resources":{"requests":{"cpu":"1000m","memory":"1024Mi"}}}', Container)
    assert container.resources == ResourceRequirements(
        requests={"cpu": Quantity("1"), "memory": Quantity("1Gi")}
    )
    assert b'{"cpu":"1","memory":"1Gi"}' in json.encode(container)


def test_quantities_may_be_numbers() -> None:
    container = json.decode(b'{"resources":{"limits":{"cpu":1,"memory":0.5}}}', Container)
    assert b'"limits":{"cpu":"1","memory":"500m"}' in json.encode(container)


def test_secret_data_is_bytes_here_and_base64_on_the_wire() -> None:
    secret = json.decode(b'{"data":{"a":"AAEC"}}', Secret)
    assert secret.data == {"a": b"\x00\x01\x02"}
    assert b'"data":{"a":"AAEC"}' in json.encode(secret)


def test_base64_may_hold_line_breaks() -> None:
    assert json.decode(b'{"data":{"a":"AA\\nEC\\r\\n"}}', Secret).data == {"a": b"\x00\x01\x02"}


NULLS = [
    ('{"metadata":{"creationTimestamp":null,"name":"a"}}', Pod(metadata=ObjectMeta(name="a"))),
    ('{"metadata":null,"spec":null,"status":null}', Pod()),
    ('{"kind":null,"spec":{"containers":null,"nodeName":null,"hostNetwork":null}}', Pod()),
    ('{"metadata":{"labels":{"a":null}}}', Pod(metadata=ObjectMeta(labels={"a": ""}))),
    ('{"spec":{"containers":[null]}}', Pod(spec=PodSpec(containers=[Container()]))),
    ('{"spec":{"overhead":{"cpu":null}}}', Pod(spec=PodSpec(overhead={"cpu": Quantity("0")}))),
    ('{"spec":{"priority":null}}', Pod()),
]


@pytest.mark.parametrize(("text", "same"), NULLS)
def test_null_is_absent_and_zero_inside_lists_and_maps(text: str, same: Pod) -> None:
    assert pod(text) == same


AS_A_POD = 'Pod in version "v1" cannot be handled as a Pod: '
NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
REFUSED = {
    '{"spec":{"containers":[{"env":[{"name":"a","value":1}]}]}}': (
        "json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string"
    ),
    '{"spec":{"hostPID":"yes"}}': (
        "json: cannot unmarshal string into Go struct field PodSpec.spec.hostPID of type bool"
    ),
    '{"spec":{"containers":{}}}': (
        "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"
    ),
    '{"metadata":{"labels":[]}}': (
        "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels "
        "of type map[string]string"
    ),
    '{"spec":{"priority":1.5}}': (
        "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32"
    ),
    '{"spec":{"priority":2147483648}}': (
        "json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of type int32"
    ),
    '{"spec":{"activeDeadlineSeconds":"1"}}': (
        "json: cannot unmarshal string into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64"
    ),
    '{"spec":{"overhead":{"cpu":"x"}}}': NO_QUANTITY,
    '{"spec":{"overhead":{"cpu":true}}}': NO_QUANTITY,
    "[]": "json: cannot unmarshal array into Go value of type v1.Pod",
}


@pytest.mark.parametrize(("text", "why"), REFUSED.items())
def test_a_value_of_another_kind_is_a_bad_request_in_gos_words(text: str, why: str) -> None:
    with pytest.raises(StatusError) as refused:
        pod(text)
    assert (refused.value.code, refused.value.message) == (400, AS_A_POD + why)


def test_an_int64_may_be_larger_than_an_int32() -> None:
    assert pod('{"spec":{"activeDeadlineSeconds":2147483648}}').spec.active_deadline_seconds == 1 << 31


def test_bad_base64_is_a_bad_request() -> None:
    with pytest.raises(StatusError) as refused:
        json.decode(b'{"data":{"a":"AA*="}}', Secret)
    assert refused.value.message.endswith("illegal base64 data at input byte 2")


@pytest.mark.parametrize("data", [b"", b"{", b"{]", b"nonsense", b'{"kind":"\xff"}', b"{}{}"])
def test_what_is_not_json_is_a_bad_request(data: bytes) -> None:
    with pytest.raises(StatusError) as refused:
        json.decode(data, Pod)
    assert refused.value.code == 400
    assert refused.value.message.startswith("the object provided is unrecognized (must be of type Pod): ")
    with pytest.raises(StatusError):
        json.decode_data(data)


@pytest.mark.parametrize(
    "opening", ["[", '{"metadata":{"managedFields":[{"fieldsV1":' + '{"a":' * 9, '{"x":']
)
def test_bottomless_json_is_a_bad_request(opening: str) -> None:
    with pytest.raises(StatusError) as refused:
        json.decode(opening.encode() + b'{"a":' * 100_000, Pod)
    assert refused.value.code == 400


def test_plain_data_and_back() -> None:
    """What a patch does: object to data, data changed, data to object."""
    secret = Secret(metadata=ObjectMeta(name="a"), data={"k": b"v"})
    data = json.to_data(secret)
    assert data["data"] == {"k": "dg=="}
    data["metadata"]["labels"] = {"x": None}
    assert json.from_data(data, Secret).metadata.labels == {"x": ""}


def test_encode_into_appends() -> None:
    buffer = bytearray(b"[")
    json.encode_into({"a": Quantity("1")}, buffer)
    assert buffer == b'[{"a":"1"}'


def test_what_is_no_api_value_is_a_fault_of_ours() -> None:
    with pytest.raises(NotImplementedError):
        json.encode(object())


words = st.text(max_size=5)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "spec", "containers", "name", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(documents)
def test_only_status_errors_escape_from_any_document(document: object) -> None:
    try:
        read = json.from_data(document, Pod)
    except StatusError as error:
        assert error.code == 400
    else:
        assert json.decode(json.encode(read), Pod) == read


@given(st.binary(max_size=20))
def test_only_status_errors_escape_from_any_bytes(data: bytes) -> None:
    try:
        json.decode(data, Pod)
    except StatusError as error:
        assert error.code == 400


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ('"overhead":{ }', {"overhead"}),
        ('"overhead" : {}, "resources":{"claims":[\n]}', {"overhead", "resources.claims"}),
        ('"overhead":{"cpu":"1"},"resources":{"limits":{}}', set()),
        ('"overhead":null,"resources":null,"hostAliases":[]', set()),
    ],
)
def test_what_was_sent_as_empty_is_noted(sent: str, told: set[str]) -> None:
    spec = json.decode_sent(f'{{"spec":{{{sent}}}}}'.encode(), Pod).spec
    assert told_empty(spec) == told
    assert b"claims" not in json.encode(spec)


def test_what_was_sent_as_empty_is_noted_in_lists_and_maps() -> None:
    sent = b'{"spec":{"ephemeralContainers":[{"ports":[]},null,{"resources":{"limits":{}}}]}}'
    containers = json.decode_sent(sent, Pod).spec.ephemeral_containers
    assert [set(told_empty(one)) for one in containers] == [{"ports"}, set(), {"resources.limits"}]
    deep = JSONSchemaProps(properties={"a": JSONSchemaProps(items=[JSONSchemaProps()])})
    data = json.encode(deep).replace(b"[{}]", b'[{"dependencies":{}}]')
    items = json.decode_sent(data, JSONSchemaProps).properties["a"].items
    assert isinstance(items, list)
    assert told_empty(items[0]) == {"dependencies"}


def test_a_quantity_that_is_a_number_is_kept_as_it_was_written() -> None:
    limits = b'"limits":{"cpu":1e3,"memory":1.50,"storage":7}'
    assert json.decode(b"{" + limits + b"}", ResourceRequirements).limits == {
        "cpu": Quantity("1e3"),
        "memory": Quantity("1.5"),
        "storage": Quantity("7"),
    }
    assert b'"cpu":"1e3"' in json.encode(json.decode(b"{" + limits + b"}", ResourceRequirements))
