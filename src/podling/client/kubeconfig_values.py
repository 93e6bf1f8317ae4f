"""Values of a kubeconfig's fields. Whatever is wrong with one is told with the field's name."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

from yarl import URL

from podling.client.tls import Pem


class FieldError(ValueError):
    """A field that cannot be; names it."""

    def __init__(self, field: str, why: object) -> None:
        super().__init__(f"{field}: {why}")


def pem(field: str, data: str, file: str, directory: Path) -> Pem:
    """Of FIELD-data or FIELD, b"" when neither is given. Raises FieldError."""
    if data and file:
        raise FieldError(field, f"{field}-data is given, too: only one can be")
    if file:
        return directory / file
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except binascii.Error as error:
        raise FieldError(f"{field}-data", error) from error


def http_url(field: str, text: str, schemes: tuple[str, ...]) -> URL:
    """Raises FieldError."""
    try:
        url = URL(text)
    except ValueError as error:
        raise FieldError(field, f"{text!r} is not a URL: {error}") from error
    if url.scheme not in schemes or not url.host:
        wanted = " or ".join(f"{scheme}://" for scheme in schemes)
        raise FieldError(field, f"{text!r} is not supported: it must be a URL that begins with {wanted}")
    return url


def header_value(field: str, text: str) -> str:
    """What is sent as a header. Raises FieldError."""
    if not text.isprintable():
        raise FieldError(field, "it has control characters in it")
    return text
