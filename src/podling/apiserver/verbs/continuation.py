"""The `continue` token of a list: where the next page starts, in the form Kubernetes' own tokens have.

Base64 of `{"v": "meta.k8s.io/v1", "rv": N, "start": "namespace/name\\0"}`: the revision the first page
was read at (-1: whatever stands now), and the key, relative to the listed prefix, before which everything
has been sent.
"""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

import msgspec

from podling.model.errors import StatusError, bad_request

VERSION = "meta.k8s.io/v1"
NOW = -1


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


class Continuation(NamedTuple):
    revision: int | None
    """The state to list; None for the one there is."""
    after: str
    """The last key sent, relative to the listed prefix."""


_decoder = msgspec.json.Decoder(_Token)


def encode_continue(continuation: Continuation) -> str:
    token = _Token(VERSION, continuation.revision or NOW, f"{continuation.after}\0")
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def decode_continue(text: str) -> Continuation:
    """Raises StatusError 400."""
    try:
        padded = text + "=" * (-len(text) % 4)
        token = _decoder.decode(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError) as error:
        raise _invalid(str(error)) from error
    if token.v != VERSION:
        raise _invalid(f'server does not recognize this encoded version "{token.v}"')
    if (
        (token.rv <= 0 and token.rv != NOW)
        or not token.start.endswith("\0")
        or ".." in token.start.split("/")
    ):
        raise _invalid("incorrect encoded start resourceVersion or key")
    return Continuation(None if token.rv == NOW else token.rv, token.start.removesuffix("\0"))


def _invalid(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")
