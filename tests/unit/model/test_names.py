"""What names may look like, and how a bad one is described."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from podling.model import names

Cases = list[tuple[Callable[[Any], object], Sequence[str | int]]]

GOOD: Cases = [
    (names.dns1123_label, ["a", "a-b", "1a", "a" * 63]),
    (names.dns1123_subdomain, ["a", "a.b-c.d", "1.2", "a" * 253]),
    (names.dns1035_label, ["a", "a-1"]),
    (names.label_key, ["a", "A.b_c-d", "example.com/Name", "a" * 63]),
    (names.label_value, ["", "a", "A_b.c-9", "a" * 63]),
    (names.port_name, ["http", "a-1", "123a"]),
    (names.port_number, [1, 65535]),
    (names.config_key, ["a", ".a", "A_b.c", "-"]),
    (names.environment_name, ["A", "a.b-c", "1 2", "é".encode().hex()]),
    (names.http_header, ["X-Name"]),
    (names.path_segment, ["a", "...", "a:b"]),
]
BAD: Cases = [
    (names.dns1123_label, ["", "A", "-a", "a-", "a_b", "a\n", "a.b", "a" * 64]),
    (names.dns1123_subdomain, ["", "A", "a..b", ".a", "a.", "a\n", "a" * 254]),
    (names.dns1035_label, ["", "1a", "a.b"]),
    (names.label_key, ["", "/a", "a/", "a/b/c", "A/b", "-a", "a" * 64]),
    (names.label_value, ["-", "a b", "a\n", "a" * 64]),
    (names.port_name, ["", "1", "A", "a--b", "-a", "a" * 16]),
    (names.port_number, [0, 65536]),
    (names.config_key, ["", ".", "..", "..a", "a/b", "a" * 254]),
    (names.environment_name, ["", "a=b", "a\tb", "é"]),
    (names.http_header, ["", "X Y"]),
    (names.path_segment, [".", "..", "a/b", "a%b"]),
]


@pytest.mark.parametrize(("check", "value"), [(check, value) for check, values in GOOD for value in values])
def test_good(check: Callable[[Any], object], value: str | int) -> None:
    assert check(value) == []


@pytest.mark.parametrize(("check", "value"), [(check, value) for check, values in BAD for value in values])
def test_bad(check: Callable[[Any], object], value: str | int) -> None:
    assert check(value)


def test_a_bad_name_is_described_as_kubernetes_does() -> None:
    assert names.dns1123_subdomain("A") == [
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
        "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    ]
    assert names.dns1123_label("A") == [
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
        "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
        "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    ]
    assert names.dns1123_label("a.b") == ["must not contain dots"]


def test_every_fault_of_a_label_key_is_told() -> None:
    prefix, name = names.label_key("A/")[0], names.label_key("A/")[1:]
    assert prefix.startswith("prefix part a lowercase RFC 1123 subdomain")
    assert name[0] == "name part must be non-empty"
    assert name[1].startswith("name part must consist of alphanumeric characters")
    assert names.label_key("/a") == ["prefix part must be non-empty"]
