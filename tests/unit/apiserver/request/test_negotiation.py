"""R-SYS-1: what clients send in Accept and Content-Type, and what they get."""

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.request.negotiation import (
    OBJECT_SHAPES,
    Wanted,
    body_format,
    check_offered,
    negotiate,
    of_an_error,
)
from podling.model.errors import StatusError

TABLE = "application/json;as=Table;g=meta.k8s.io"
KUBECTL_GET = f"{TABLE};v=v1,{TABLE};v=v1beta1,application/json"

ACCEPTED = [
    ("", Wanted()),
    ("*/*", Wanted()),
    ("application/json", Wanted()),
    ("application/yaml", Wanted("application/yaml")),
    ("application/json, */*", Wanted()),
    ("application/vnd.kubernetes.protobuf,application/json", Wanted()),
    ("application/json;q=0.5, application/yaml", Wanted("application/yaml")),
    (KUBECTL_GET, Wanted("application/json", "Table", "meta.k8s.io", "v1")),
    (
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        Wanted("application/json", "PartialObjectMetadataList", "meta.k8s.io", "v1"),
    ),
    ("application/json;as=Novel;g=meta.k8s.io;v=v1,application/json", Wanted()),
    ("application/json;stream=watch", Wanted()),
    ("application/json;q=0", Wanted()),
    ("application/json;pretty=1", Wanted(pretty=True)),
    ("*/*,application/yaml;q=0.5", Wanted("application/yaml")),
    ("application/yaml;q=0.5,*/*", Wanted()),
    ("application/*;q=0.9,*/*", Wanted()),
    ("application/json;q=x,application/yaml;q=-1", Wanted()),
]


@pytest.mark.parametrize(("accept", "wanted"), ACCEPTED)
def test_the_first_clause_that_can_be_served(accept: str, wanted: Wanted) -> None:
    assert negotiate(accept, OBJECT_SHAPES) == wanted


def test_shapes_are_the_endpoints_own() -> None:
    assert negotiate(KUBECTL_GET) == Wanted()


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "application/vnd.kubernetes.protobuf",
        "APPLICATION/JSON",
        "application/json;v=v1",
        "application/json;as=X;g=y;v=z",
        "application/yaml;stream=watch",
    ],
)
def test_what_cannot_be_served_is_refused(accept: str) -> None:
    with pytest.raises(StatusError) as raised:
        negotiate(accept, OBJECT_SHAPES)
    assert (raised.value.code, raised.value.reason) == (406, "NotAcceptable")


@pytest.mark.parametrize(
    ("accept", "offered"),
    [("", True), ("*/*;q=0", True), ("a/b, application/json ;q=0", True), ("application/*", False)],
)
def test_what_the_router_lets_in(accept: str, offered: bool) -> None:
    refused = nullcontext() if offered else pytest.raises(StatusError, match="Available representations")
    with refused:
        check_offered(accept, ("application/json",))


def test_an_error_has_no_type_where_it_cannot_be_what_was_asked_for() -> None:
    assert of_an_error("text/html") is of_an_error(f"{TABLE};v=v1") is None
    assert of_an_error(f"{TABLE};v=v1,application/yaml") == Wanted("application/yaml")


@pytest.mark.parametrize(
    ("content_type", "format_"),
    [
        ("", "application/json"),
        ("application/json", "application/json"),
        ("application/json; charset=utf-8", "application/json"),
        ("Application/YAML", "application/yaml"),
        ("application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"),
    ],
)
def test_bodies(content_type: str, format_: str) -> None:
    assert body_format(content_type) == format_


@pytest.mark.parametrize("content_type", ["text/plain", "application/cbor", "json"])
def test_other_bodies_are_refused(content_type: str) -> None:
    with pytest.raises(StatusError) as raised:
        body_format(content_type)
    assert raised.value.code == 415
    assert "accepted media types include: application/json, application/yaml" in raised.value.message


@given(st.text(alphabet='application/json;q=0.1,*" \x7fé', max_size=40))
def test_only_a_status_escapes(accept: str) -> None:
    try:
        negotiate(accept, OBJECT_SHAPES)
    except StatusError as error:
        assert error.code == 406
