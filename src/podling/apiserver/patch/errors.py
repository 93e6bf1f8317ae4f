"""The answer to a patch that is well-formed but cannot be applied."""

from __future__ import annotations

from podling.model.errors import Cause, StatusError

_REJECTED = "the server rejected our request due to an error in our request"


def rejected(why: str) -> StatusError:
    """422: well-formed, but it does not fit the object. The message is Kubernetes', the cause says why."""
    return StatusError(422, "Invalid", _REJECTED, causes=[Cause("FieldValueInvalid", why, "patch")])
