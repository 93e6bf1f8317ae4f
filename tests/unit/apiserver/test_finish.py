"""Warning headers survive whatever a field is called; answers are written as their reader wants them."""

from datetime import UTC, datetime
from gzip import decompress

import msgspec
import pytest
import yaml

from podling.apiserver.finish import accepts_gzip, bounded, finish, rewrite, warning
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.negotiation import JSON, YAML, Wanted
from podling.apiserver.request.request import Request, parse_query
from podling.apiserver.request.response import Response

PLAIN, PRETTY = b'{"b":[],"a":{"c":1}}', b'{\n  "b": [],\n  "a": {\n    "c": 1\n  }\n}'


async def written(query: str = "", media_type: str = JSON, body: bytes = PLAIN, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = Request("GET", "/api/v1/pods/x", query, headers=named)
    context = RequestContext(request, "id", datetime(2026, 1, 1, tzinfo=UTC), parse_query(query))
    context.wanted = Wanted(media_type)
    response = Response(200, body)
    if finish(context, response):
        await rewrite(context, response)
    return response


@pytest.mark.parametrize(
    ("query", "agent", "body"),
    [
        ("", "kubectl/v1.36.0", PLAIN),
        ("", "curl/8.1", PRETTY),
        ("", "Mozilla/5.0 (X11)", PRETTY),
        ("pretty=true", "kubectl/v1.36.0", PRETTY),
        ("pretty=1", "", PRETTY),
        ("pretty=false", "curl/8.1", PLAIN),
        ("pretty=yes", "curl/8.1", PLAIN),
        ("pretty=", "curl/8.1", PRETTY),
    ],
)
async def test_people_are_shown_lines(query: str, agent: str, body: bytes) -> None:
    assert (await written(query, User_Agent=agent)).body == body


async def test_yaml_is_in_order() -> None:
    response = await written(media_type=YAML, User_Agent="curl/8.1")
    assert (response.body, response.content_type) == (b"a:\n  c: 1\nb: []\n", YAML)


@pytest.mark.parametrize("media_type", [JSON, YAML])
async def test_what_is_long_is_compressed_as_it_is_wanted(media_type: str) -> None:
    items = [{"a": "b" * 100} for _ in range(2000)]
    sent = msgspec.json.encode(items)
    response = await written(media_type=media_type, body=sent, Accept_Encoding="gzip")
    assert isinstance(response.body, bytes) and len(response.body) < len(sent) / 10
    assert response.headers["Content-Encoding"] == "gzip"
    assert yaml.load(decompress(response.body), yaml.CSafeLoader) == items


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("plain", '299 - "plain"'),
        ('unknown field "x"', '299 - "unknown field \\"x\\""'),
        ("back\\slash", '299 - "back\\\\slash"'),
        ("two\r\nlines", '299 - "two  lines"'),
    ],
)
def test_warnings(text: str, header: str) -> None:
    assert warning(text) == header


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("", False),
        ("gzip", True),
        ("br, gzip", True),
        ("gzip; q=0.5", False),
        ("gzip;q=0", False),
        ("x", False),
    ],
)
def test_who_accepts_gzip(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


def test_warnings_that_come_to_too_much_are_cut_and_then_left_out() -> None:
    """Figures of kube-apiserver 1.36."""
    assert bounded(["a", "b", "a"]) == ["a", "b"]
    assert bounded(["x" * 3000]) == ["x" * 3000]
    many = [f"unknown field {i}{'x' * 300}" for i in range(20)]
    assert bounded(many) == [text[:256] for text in many[:16]]
    assert bounded(["x" * 5000]) == ["x" * 256]
