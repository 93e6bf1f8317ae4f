"""URLs as Go reads them (`net/url`), which takes less than Python does and says why in words of its own."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from urllib.parse import quote, unquote

import msgspec

from podling.model.codec.quoting import quoted

_CONTROL = re.compile("[\x00-\x1f\x7f]")
_SCHEME = re.compile("([A-Za-z][A-Za-z0-9+.-]*):")
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_PORT = re.compile("(?::[0-9]*)?")
_NOT_IN_HOST = re.compile("[\x00- #/?@\\\\^`{|}%]")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_IN_USER = "$&+,;="


class Url(msgspec.Struct):
    """The parts of a URL, as they are written. `user` is None without an `@`."""

    scheme: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    query: str = ""
    fragment: str = ""


def parsed_url(text: str) -> Url:
    """Raises ValueError in Go's words. Why an address in brackets is none is told more briefly."""
    whole, _, fragment = text.partition("#")
    told = whole
    try:
        url = _parsed(whole)
        told = text
        _check_escapes(fragment)
    except ValueError as error:
        raise ValueError(f"parse {quoted(told)}: {error}") from None
    url.fragment = fragment
    return url


def _parsed(text: str) -> Url:
    if _CONTROL.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if text.startswith(":"):
        raise ValueError("missing protocol scheme")
    url, rest = Url(), text
    if found := _SCHEME.match(text):
        url.scheme, rest = found[1].lower(), text[found.end() :]
    rest, _, url.query = rest.partition("?")
    if not rest.startswith("/"):
        if url.scheme:
            return url
        if ":" in rest.partition("/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    if rest.startswith("//") and (url.scheme or not rest.startswith("///")):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        url.user, url.host = _authority(authority)
    _check_escapes(rest)
    url.path = rest
    return url


def requested_url(text: str) -> Url:
    """As `parsed_url`, for what stands in a request: a path alone, or a whole URL without a fragment."""
    try:
        if not text:
            raise ValueError("empty url")
        url = _parsed(text)
        if not url.scheme and not text.startswith("/"):
            raise ValueError("invalid URI for request")
    except ValueError as error:
        raise ValueError(f"parse {quoted(text)}: {error}") from None
    return url


def _authority(text: str) -> tuple[str | None, str]:
    user, at, host = text.rpartition("@")
    bracket, colon = host.rfind("["), host.find(":")
    if bracket > 0:
        raise ValueError("invalid IP-literal")
    if bracket == 0:
        literal, closing, port = host[1:].rpartition("]")
        if not closing:
            raise ValueError("missing ']' in host")
        _check_port(port)
        check_literal(literal)
    else:
        if colon >= 0:
            _check_port(host[colon:])
        _check_host(host)
    if not at:
        return None, host
    if not _USER.fullmatch(user):
        raise ValueError("net/url: invalid userinfo")
    name, is_secret, password = user.partition(":")
    for part in (name, password):
        _check_escapes(part)
    return is_secret.join(quote(unquote(part), safe=_IN_USER) for part in (name, password)), host


def _check_port(text: str) -> None:
    if not _PORT.fullmatch(text):
        raise ValueError(f"invalid port {quoted(text)} after host")


def check_literal(text: str) -> None:
    address, percent, zone = text.partition("%25")
    _check_host(address)
    for found in _ESCAPE.finditer(zone):
        if (letter := unquote(found[0])) != " " and found[0] != "%25" and _NOT_IN_HOST.search(letter):
            raise ValueError(f"invalid URL escape {quoted(found[0])}")
    _check_host(_ESCAPE.sub("", zone))
    whole = quoted(f"{address}{'%' if percent else ''}{unquote(zone)}")
    if percent and not zone:
        raise ValueError(f"invalid host: ParseAddr({whole}): zone must be a non-empty string")
    try:
        IPv6Address(address)
    except ValueError:
        if re.fullmatch("[0-9.]+", address):
            raise ValueError("invalid IP-literal") from None
        raise ValueError(f"invalid host: ParseAddr({whole}): unable to parse IP") from None


def _check_host(text: str) -> None:
    """Escapes stand for what is not ASCII alone."""
    _check_escapes(text)
    for escape in _ESCAPE.findall(text):
        if escape[1] < "8" and escape != "%25":
            raise ValueError(f"invalid URL escape {quoted(escape)}")
    if found := _NOT_IN_HOST.search(_ESCAPE.sub("", text)):
        raise ValueError(f"invalid character {quoted(found[0])} in host name")


def _check_escapes(text: str) -> None:
    at = _ESCAPE.sub("...", text).find("%")
    if at >= 0:
        raise ValueError(f"invalid URL escape {quoted(text[at : at + 3])}")
