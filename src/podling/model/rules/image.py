"""References of images, as they are written in containers: `name`, `name:tag`, `name@digest`."""

from __future__ import annotations

import re

LONGEST = 600
"""Characters; a name has at most 255, a tag 128, and a digest of SHA-512 135."""
MAX_NAME = 255
LATEST = "latest"

_HOST = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = rf"(?:{_HOST}(?:\.{_HOST})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_DIGEST = "sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}"
_NAME = rf"{_DOMAIN}/{_PATH}(?:/{_PATH})*"
_REFERENCE = re.compile(rf"({_NAME})(?::([a-zA-Z0-9_][a-zA-Z0-9_.-]{{0,127}}))?(?:@({_DIGEST}))?")
_ID = re.compile("[a-f0-9]{64}")


def tag_of(image: str) -> str:
    """The tag; `latest` where neither tag nor digest is given, empty where only a digest is, or where it is
    no reference at all."""
    if len(image) > LONGEST or _ID.fullmatch(image):
        return ""
    host, slash, _ = image.partition("/")
    named = slash and (host == "localhost" or "." in host or ":" in host or host != host.lower())
    found = _REFERENCE.fullmatch(image if named else f"docker.io/library/{image}")
    if found is None or len(found[1]) > MAX_NAME:
        return ""
    return found[2] or ("" if found[3] else LATEST)
