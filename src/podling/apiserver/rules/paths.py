"""Validation of relative paths, which must stay below the directory they start from."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.rules.field import invalid
from podling.model.errors import Cause


def validate_no_backsteps(value: str, path: str) -> Iterator[Cause]:
    if ".." in value.split("/"):
        yield invalid(path, value, "must not contain '..'")


def validate_descending(value: str, path: str) -> Iterator[Cause]:
    """Relative, and not stepping out of where it begins."""
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    yield from validate_no_backsteps(value, path)


def validate_not_reserved(value: str, path: str) -> Iterator[Cause]:
    """A file within a volume, where names in `..` are the kubelet's own."""
    yield from validate_descending(value, path)
    if value.startswith("..") and not value.startswith("../"):
        yield invalid(path, value, "must not start with '..'")
