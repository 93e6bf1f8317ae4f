"""The one place where an error becomes an answer: a meta/v1 Status with the error's code."""

from __future__ import annotations

import msgspec

from podling.apiserver.response import Response
from podling.model.errors import StatusError

_encode = msgspec.json.Encoder().encode


def failure(error: StatusError) -> Response:
    response = Response(error.code, _encode(error.status()))
    if error.retry_after_seconds:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response


def method_not_supported() -> StatusError:
    """405: the path exists, but not for this method."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message)
