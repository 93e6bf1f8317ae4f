"""API errors: meta/v1 Status as a type, and `StatusError`, which carries one (code, reason, message, causes).

Any layer between a request and the storage raises them. The API server's pipeline turns them into the answer
in one place, and the client raises them again from that answer. A function makes each reason that Kubernetes
clients know.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec

from podling.model.codec.fields import Int32, Object, Part, always
from podling.model.codec.quoting import quoted
from podling.model.types.meta import ListMeta

LONGEST_TOLD = 128 * 1024
"""Longest message, and longest list of causes, in characters. Kubernetes has no such bound: it answers a 1 MB
object with 9 MB of faults.
"""

STALE = "the object has been modified; please apply your changes to the latest version and try again"


class StatusCause(Part):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Part):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] = []
    retry_after_seconds: Int32 = 0


class Status(Object):
    KIND: ClassVar[str] = "Status"
    API_VERSION: ClassVar[str] = "v1"

    metadata: ListMeta = always(ListMeta)
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: Int32 = 0


class Cause(NamedTuple):
    """One thing wrong with one field.

    `reason` is a CauseType such as FieldValueInvalid, `field` a path such as `spec.containers[0].name`.
    """

    reason: str
    message: str
    field: str = ""


_statuses = msgspec.json.Decoder(Status)


class StatusError(Exception):
    """An API error: HTTP `code`, machine-readable `reason`, `message`, and Status `details`."""

    LEFT_OUT: tuple[str, ...] = ("reason", "details")
    """Of the Status, when they are empty."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        name: str = "",
        group: str = "",
        kind: str = "",
        uid: str = "",
        causes: Sequence[Cause] = (),
        retry_after_seconds: int = 0,
    ) -> None:
        message = cut(message)
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.name = name
        self.group = group
        self.kind = kind
        self.uid = uid
        self.causes = tuple(causes)
        self.retry_after_seconds = retry_after_seconds
        self.continue_token = ""
        """Of an Expired list: how to go on with it all the same."""
        self.headers: Mapping[str, str] = {}
        """Of the answer."""

    @classmethod
    def from_json(cls, code: int, body: bytes) -> "StatusError":
        """The error of an answer or of a watch's ERROR event. A body that is no Status becomes the
        message."""
        try:
            status = _statuses.decode(body)
        except msgspec.DecodeError:
            return cls(code, "", body.decode(errors="replace").strip() or f"the server answered {code}")
        details = status.details or StatusDetails()
        return cls(
            status.code or code,
            status.reason,
            status.message,
            name=details.name,
            group=details.group,
            kind=details.kind,
            uid=details.uid,
            causes=[Cause(c.reason, c.message, c.field) for c in details.causes],
            retry_after_seconds=details.retry_after_seconds,
        )

    def status(self) -> dict[str, Any]:
        """The meta/v1 Status of this error, as JSON-ready data."""
        named = {"name": self.name, "group": self.group, "kind": self.kind, "uid": self.uid}
        details: dict[str, Any] = {key: value for key, value in named.items() if value}
        if self.causes:
            details["causes"] = [
                {key: value for key, value in cause._asdict().items() if value} for cause in self.causes
            ]
        if self.retry_after_seconds:
            details["retryAfterSeconds"] = self.retry_after_seconds
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": details,
            "code": self.code,
        }
        return {key: value for key, value in status.items() if value or key not in self.LEFT_OUT}


class GenericError(StatusError):
    """The error for a path or method that the server does not have. `details` is empty but present: kubectl
    reads it without checking."""

    LEFT_OUT = ("reason",)


def _qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(resource: str, name: str, group: str = "") -> StatusError:
    return StatusError(
        404,
        "NotFound",
        f"{_qualified(resource, group)} {quoted(name)} not found",
        name=name,
        group=group,
        kind=resource,
    )


def already_exists(
    resource: str, name: str, group: str = "", *, goes: bool = False, generated: bool = False
) -> StatusError:
    """`goes`: what stands in the way is being deleted, so another try may find it gone. `generated`: the name
    was to be made of a prefix, so another try may make another."""
    message = f"{_qualified(resource, group)} {quoted(name)} already exists"
    if generated:
        message += ", the server was not able to generate a unique name for the object"
    if goes:
        message = f"object is being deleted: {message}"
    after = 1 if generated else 0
    return StatusError(
        409, "AlreadyExists", message, name=name, group=group, kind=resource, retry_after_seconds=after
    )


def conflict(resource: str, name: str, why: str, group: str = "") -> StatusError:
    message = f"Operation cannot be fulfilled on {_qualified(resource, group)} {quoted(name)}: {why}"
    return StatusError(409, "Conflict", message, name=name, group=group, kind=resource)


def forbidden(resource: str, name: str, why: str, group: str = "") -> StatusError:
    subject = _qualified(resource, group)
    message = f"{subject} {quoted(name)} is forbidden: {why}" if name else f"{subject} is forbidden: {why}"
    return StatusError(403, "Forbidden", message, name=name, group=group, kind=resource)


def invalid(kind: str, name: str, causes: Sequence[Cause], group: str = "") -> StatusError:
    """422 for a `kind` (not a resource) with every fault found; the message of a cause does not repeat its
    field.

    Where several causes say the same, the message says it once, as Kubernetes' does. If the causes come to
    more than half of `LONGEST_TOLD`, only the first are listed, with the number of all.
    """
    told = _told(causes)
    faults = list(dict.fromkeys(f"{c.field}: {c.message}" if c.field else c.message for c in told))
    faults += [f"and {len(causes) - len(told)} more"] if len(told) < len(causes) else []
    message = f"{_qualified(kind, group)} {quoted(cut(name))} is invalid: {joined(faults) or '[]'}"
    return StatusError(422, "Invalid", message, name=cut(name), group=group, kind=kind, causes=told)


def joined(faults: Sequence[str]) -> str:
    """As Go prints several errors: `[a, b]`, and one as it is. Empty if there is none."""
    return f"[{', '.join(faults)}]" if len(faults) > 1 else "".join(faults)


def _told(causes: Sequence[Cause]) -> list[Cause]:
    told: list[Cause] = []
    # The message, which says them once more with commas between them, has room for twice as much.
    left = LONGEST_TOLD // 2
    for cause in causes:
        left -= len(cause.message) + len(cause.field)
        if told and left < 0:
            break
        told.append(Cause(cause.reason, cut(cause.message), cut(cause.field)))
    return told


def cut(text: str) -> str:
    """`text`, or its beginning and how many characters more there are when it is over LONGEST_TOLD."""
    return text if len(text) <= LONGEST_TOLD else f"{text[:LONGEST_TOLD]}… ({len(text) - LONGEST_TOLD} more)"


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def unfit_patch(why: str) -> StatusError:
    """422: a well-formed patch does not fit the object. The message is Kubernetes', the cause says why."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, causes=[Cause("FieldValueInvalid", why, "patch")])


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def gone(message: str) -> StatusError:
    """410 with reason Expired: a list token or a watch's resourceVersion is too old."""
    return StatusError(410, "Expired", message)


def unsupported_media_type(accepted: Sequence[str], of: type[StatusError] = StatusError) -> StatusError:
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return of(415, "UnsupportedMediaType", message)


def not_acceptable(accepted: Sequence[str]) -> StatusError:
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return StatusError(406, "NotAcceptable", message)


def too_large(limit: int) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def internal(message: str, *, causes: Sequence[Cause] = ()) -> StatusError:
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", causes=causes)


def service_unavailable(message: str, retry_after_seconds: int = 0) -> StatusError:
    return StatusError(503, "ServiceUnavailable", message, retry_after_seconds=retry_after_seconds)


def page_not_found() -> StatusError:
    """404 for a path that no handler serves."""
    return GenericError(404, "NotFound", "the server could not find the requested resource")
