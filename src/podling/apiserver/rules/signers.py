"""Validation of a certificate signer's name: a domain and a path (`example.com/signer`)."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.rules.field import all_invalid, invalid, required
from podling.model import names
from podling.model.errors import Cause

MAX_DOMAIN, MAX_PATH = 253, 317


def validate_signer(name: str, path: str) -> Iterator[Cause]:
    if not name:
        yield required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid(path, name, why)
        return
    yield from all_invalid(path, domain, names.dns1123_subdomain(domain))
    if "." not in domain:
        yield invalid(path, domain, "should be a domain with at least two segments separated by dots")
    for segment in rest.split("."):
        yield from all_invalid(path, segment, names.dns1123_label(segment))
    if len(name) > MAX_DOMAIN + 1 + MAX_PATH:
        yield invalid(path, name, f"must be no more than {MAX_DOMAIN + 1 + MAX_PATH} characters")
