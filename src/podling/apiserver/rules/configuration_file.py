"""What every configuration file of the API server is held to: one kind, of a version that is known, with no
unknown or repeated fields, in the words of Go's decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from podling.model.codec import json
from podling.model.codec.fields import Object, Part
from podling.model.codec.quoting import quoted
from podling.model.codec.strict import field_faults, strict_message
from podling.model.errors import Cause, StatusError, joined

T = TypeVar("T", bound=Object)
P = TypeVar("P", bound=Part)
R = TypeVar("R")


class ConfigurationError(ValueError):
    """A configuration that cannot be used; the message has the path of each fault."""


def read_file(data: bytes, type: type[T], kinds: Collection[tuple[str, str]]) -> T:
    """A configuration of `type` from JSON, which is one of `kinds` (kind, apiVersion) and not validated yet.
    Raises ConfigurationError."""
    said = _told(json.decode_data, data)
    if not isinstance(said, dict) and said is not None:
        raise ConfigurationError("couldn't get version/kind; json parse error: it is no object")
    if not said or not said.get("kind"):
        raise ConfigurationError("Object 'Kind' is missing")
    if not said.get("apiVersion"):
        raise ConfigurationError("Object 'apiVersion' is missing")
    kind, version = said["kind"], said["apiVersion"]
    if (kind, version) not in kinds:
        raise ConfigurationError(
            f"no kind {quoted(str(kind))} is registered for version {quoted(str(version))}"
        )
    return read_fields(data, type)


def read_fields(data: bytes, type: type[P]) -> P:
    """As `read_file`, of what has no kind."""
    configuration: P = _told(json.decode, data, type)
    if unknown := _told(field_faults, data, type):
        raise ConfigurationError(strict_message(unknown))
    return configuration


def _told(read: Callable[..., R], *given: Any) -> R:
    try:
        return read(*given)
    except StatusError as error:
        raise ConfigurationError(f"{error.__cause__ or error.message}") from error


def all_faults(causes: Iterable[Cause]) -> str:
    """Every fault with its path, as Go joins errors; empty if there is none."""
    return joined([f"{cause.field}: {cause.message}" for cause in causes])
