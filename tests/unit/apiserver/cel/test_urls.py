"""URLs as Go takes them; the faults are those that kube-apiserver answered with."""

from __future__ import annotations

import pytest

from podling.apiserver.cel.urls import Url, parsed_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://h/a?q#f", Url("https", None, "h", "/a", "q", "f")),
        ("HTTPS://H:/", Url("https", None, "H:", "/")),
        ("https:h", Url("https")),
        ("*", Url(path="*")),
        ("//h/a:b", Url("", None, "h", "/a:b")),
        ("https://a:b:c@h", Url("https", "a:b%3Ac", "h")),
        ("https://@h", Url("https", "", "h")),
        ("https://[::1%25e%20n]:80/", Url("https", None, "[::1%25e%20n]:80", "/")),
        ('https://a"<é.test/ ', Url("https", None, 'a"<é.test', "/ ")),
    ],
)
def test_parts(text: str, url: Url) -> None:
    assert parsed_url(text) == url


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (":h", "missing protocol scheme"),
        ("1h://", "first path segment in URL cannot contain colon"),
        ("https://h\n", "net/url: invalid control character in URL"),
        ("https://a b/", 'invalid character " " in host name'),
        ("https://a\\b/", 'invalid character "\\\\" in host name'),
        ("https://a:80:80/", 'invalid port ":80:80" after host'),
        ("https://[::1]a/", 'invalid port "a" after host'),
        ("https://[::1/", "missing ']' in host"),
        ("https://a[::1]/", "invalid IP-literal"),
        ("https://[1.2.3.4]/", "invalid IP-literal"),
        ("https://[x]/", 'invalid host: ParseAddr("x"): unable to parse IP'),
        ("https://[::1%25]/", 'invalid host: ParseAddr("::1%"): zone must be a non-empty string'),
        ("https://[::1%25e%2fn]/", 'invalid URL escape "%2f"'),
        ("https://%41/", 'invalid URL escape "%41"'),
        ("https://h/%2x?%zz", 'invalid URL escape "%2x"'),
        ("https://h#%z", 'invalid URL escape "%z"'),
        ("https://é@h/", "net/url: invalid userinfo"),
    ],
)
def test_faults(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="parse") as raised:
        parsed_url(text)
    assert str(raised.value).endswith(f'": {why}')


def test_a_fault_shows_the_url_as_go_quotes_it() -> None:
    with pytest.raises(ValueError, match="parse") as raised:
        parsed_url('https://h/\u200b"\\\u00adé\U0001f600\ue000%')
    shown = '"https://h/\\u200b\\"\\\\\\u00adé\U0001f600\\ue000%"'
    assert str(raised.value) == f'parse {shown}: invalid URL escape "%"'
