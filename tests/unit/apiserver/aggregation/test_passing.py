"""What is passed on to other API servers: path, query, and whose request it is."""

from __future__ import annotations

import pytest

from podling.apiserver.aggregation.passing import go_query, target_of, who
from podling.apiserver.request.request import Request, User


@pytest.mark.parametrize(
    ("query", "passed"),
    [
        ("", ""),
        ("x=1&y=%20z", "x=1&y=+z"),
        ("b=2&a=1&b=1", "a=1&b=2&b=1"),
        ("fieldSelector=a%3Bb;c=d&z&a=&b=%zz", "a=&z="),
        ("a+b=c%2Bd", "a+b=c%2Bd"),
    ],
)
def test_queries_are_passed_on_as_go_writes_them(query: str, passed: str) -> None:
    assert go_query(query) == passed


@pytest.mark.parametrize(
    ("path", "passed"),
    [
        ("/a//b/../c%2Fd%20e", "/a//b/../c/d%20e"),
        ("/%ff", "/%FF"),
        ("/a?b", "/a%3Fb"),
        ("/%2e%2e/x", "/../x"),
    ],
)
def test_paths_are_decoded_and_encoded_again(path: str, passed: str) -> None:
    assert target_of(Request("GET", path)) == passed


def test_headers_tell_who_it_is() -> None:
    user = User("jane", ("g1", "g2"), "u1", (("example.com/x", ("y", "z")), ("scopes", ("a b",))))
    assert who(user) == [
        ("X-Remote-User", "jane"),
        ("X-Remote-Uid", "u1"),
        ("X-Remote-Group", "g1"),
        ("X-Remote-Group", "g2"),
        ("X-Remote-Extra-Example.com%2fx", "y"),
        ("X-Remote-Extra-Example.com%2fx", "z"),
        ("X-Remote-Extra-Scopes", "a b"),
    ]
