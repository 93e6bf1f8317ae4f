"""Warning headers survive whatever a field is called."""

import pytest

from podling.apiserver.finish import accepts_gzip, warning


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
        ("gzip; q=0.5", True),
        ("gzip;q=0", False),
        ("x", False),
    ],
)
def test_who_accepts_gzip(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted
