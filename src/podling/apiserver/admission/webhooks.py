"""Admission webhooks: which there are, what they are asked, and what their answers mean.

Everything here is pure. The messages are those of Kubernetes, with the words that Go has for what a network
or a text can have wrong, since people search for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.admission.forms import Form
from podling.apiserver.admission.matching import Match, compiled, namespace_of
from podling.apiserver.admission.plugin import Attributes
from podling.apiserver.patch.json_patch import json_patch
from podling.model.codec import json
from podling.model.errors import Cause, Status, StatusDetails, StatusError, bad_request, internal
from podling.model.types.admission import AdmissionResponse, AdmissionReview
from podling.model.types.admissionregistration import (
    MatchCondition,
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)

GROUP, KIND = "admission.k8s.io", AdmissionReview.KIND
KNOWN_VERSIONS = ("v1", "v1beta1")
SCHEME = "k8s.io/apiserver/pkg/util/webhook/client.go:71"
"""How Kubernetes calls what it knows of reviews, in the message to who answers something else."""
GO_TYPE = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)
HARMLESS = ("None", "NoneOnDryRun")
MOST_ANNOTATED = 64 * 1024
"""Characters of all audit annotations of one request; those that would exceed it are left out."""

ANSWERS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the "
    "request",
}
"""What client-go says of a status when the body does not."""

Configuration = MutatingWebhookConfiguration | ValidatingWebhookConfiguration


class Hook(msgspec.Struct, frozen=True):
    """One webhook, compiled on change of its configuration."""

    configuration: str
    name: str
    match: Match
    conditions: Sequence[MatchCondition]
    client: WebhookClientConfig
    version: str
    """v1, or v1beta1 if the webhook would rather have that."""
    seconds: float
    ignores: bool
    """failurePolicy is Ignore: the write goes on if the webhook does not answer as it should."""
    harmless: bool
    """It has no side effects, at least not on a dry run."""
    reinvoked: bool
    key: str
    """Of this webhook alone."""


class Answered(NamedTuple):
    """What an answer says that allows. `patch` is a list of operations, None for no change."""

    patch: Any
    warnings: Sequence[str]
    annotations: Mapping[str, str]


class CallError(Exception):
    """The webhook was not reached, or has not answered as it should; `failurePolicy` says what follows."""

    def __init__(self, hook: str, why: str) -> None:
        super().__init__(f'failed calling webhook "{hook}": {why}')


class Refused(Exception):
    """The webhook has denied the write."""

    def __init__(self, error: StatusError, told: Answered) -> None:
        super().__init__(error.message)
        self.error = error
        self.told = told


def hooks_of(configurations: Iterable[Configuration]) -> tuple[Hook, ...]:
    """All webhooks in the order in which they are asked: by the names of their configurations, and then as
    these list them."""
    ordered = sorted(configurations, key=lambda one: one.metadata.name)
    listed: list[tuple[str, Sequence[MutatingWebhook | ValidatingWebhook]]]
    listed = [(one.metadata.name, one.webhooks) for one in ordered]
    return tuple(_hook(name, index, one) for name, hooks in listed for index, one in enumerate(hooks))


def _hook(configuration: str, index: int, webhook: MutatingWebhook | ValidatingWebhook) -> Hook:
    known = (one for one in webhook.admission_review_versions if one in KNOWN_VERSIONS)
    return Hook(
        configuration,
        webhook.name,
        compiled(webhook.rules, webhook.namespace_selector, webhook.object_selector, webhook.match_policy),
        webhook.match_conditions,
        webhook.client_config,
        next(known, KNOWN_VERSIONS[0]),
        float(webhook.timeout_seconds or 0),
        webhook.failure_policy == "Ignore",
        webhook.side_effects in HARMLESS,
        isinstance(webhook, MutatingWebhook) and webhook.reinvocation_policy == "IfNeeded",
        f"{configuration}/{webhook.name}/{index}",
    )


def check_dry_run(hook: Hook) -> None:
    """Raises StatusError 400 for a webhook with side effects."""
    if not hook.harmless:
        raise bad_request(f'admission webhook "{hook.name}" does not support dry run')


def review(hook: Hook, attributes: Attributes, form: Form, new: Any, old: Any, uid: str) -> bytes:
    """The AdmissionReview to send."""
    own, user = attributes.sent.forms[0], attributes.user
    below = attributes.subresource
    request: dict[str, Any] = {
        "uid": uid,
        "kind": _kind(form),
        "resource": {"group": form.group, "version": form.version, "resource": form.plural},
        "subResource": below,
        "requestKind": _kind(own),
        "requestResource": {"group": own.group, "version": own.version, "resource": own.plural},
        "requestSubResource": below,
        "name": attributes.name,
        "namespace": namespace_of(attributes),
        "operation": attributes.operation,
    }
    who = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra},
    }
    request = {key: value for key, value in request.items() if value != ""} | {
        "userInfo": {key: value for key, value in who.items() if value},
        "object": _raw(attributes.encoded(new, form)),
        "oldObject": _raw(attributes.encoded(old, form)),
        "dryRun": attributes.dry_run,
        "options": attributes.sent.options,
    }
    return msgspec.json.encode({"kind": KIND, "apiVersion": f"{GROUP}/{hook.version}", "request": request})


def _kind(form: Form) -> dict[str, str]:
    group, _, version = form.api_version.rpartition("/")
    return {"group": group, "version": version, "kind": form.kind}


def _raw(encoded: bytes | None) -> msgspec.Raw | None:
    return None if encoded is None else msgspec.Raw(encoded)


def judge(hook: Hook, uid: str, code: int, media_type: str, body: bytes, *, may_patch: bool) -> Answered:
    """What an answer says. Raises CallError for one that is none, Refused if it denies the write, StatusError
    500 for a patch that is no patch."""
    if not 200 <= code < 300:
        raise CallError(hook.name, f"failed to call webhook: {refusal_of(code, media_type, body)}")
    if not body:
        nothing = f"0-length response with status code: {code} and content type: {media_type}"
        raise CallError(hook.name, f"failed to call webhook: {nothing}")
    try:
        response = response_of(hook, body)
    except ValueError as error:
        raise CallError(hook.name, f"failed to call webhook: {error}") from error
    if fault := fault_of(hook, uid, response, may_patch=may_patch):
        raise CallError(hook.name, f"received invalid webhook response: {fault}")
    assert response is not None
    annotations = {f"{hook.name}/{key}": value for key, value in response.audit_annotations.items()}
    told = Answered(None, [text for text in response.warnings if text], annotations)
    if not response.allowed:
        raise Refused(denial(hook.name, response.status), told)
    return told._replace(patch=operations_of(hook, response) if response.patch else None)


def response_of(hook: Hook, body: bytes) -> AdmissionResponse | None:
    """Raises ValueError for what is no review of the version that was asked for."""
    start = body.lstrip()[:1]
    data = None
    if start == b"{":
        try:
            data = json.decode_data(body)
        except StatusError as error:
            told = error.message.replace("Input data was truncated", "unexpected end of JSON input")
            raise ValueError(told) from error
    elif start and body.strip() != b"null":
        what = "array" if start == b"[" else "string"
        raise ValueError(
            "couldn't get version/kind; json parse error: "
            f"json: cannot unmarshal {what} into Go value of type {GO_TYPE}"
        )
    data = data or {}
    version, kind = data.get("apiVersion") or f"{GROUP}/{hook.version}", data.get("kind") or KIND
    if kind == KIND and version in [f"{GROUP}/{known}" for known in KNOWN_VERSIONS]:
        other = version.rpartition("/")[2]
        if other != hook.version:
            raise ValueError(f"converting ({other}.{KIND}) to ({hook.version}.{KIND}): unknown conversion")
    else:
        raise ValueError(f'no kind "{kind}" is registered for version "{version}" in scheme "{SCHEME}"')
    try:
        return json.from_data({"response": data.get("response")}, AdmissionReview).response
    except StatusError as error:
        words = error.message[error.message.find("json: ") :]
        raise ValueError(words.replace("AdmissionReview.response", "AdmissionResponse.response")) from error


def fault_of(hook: Hook, uid: str, response: AdmissionResponse | None, *, may_patch: bool) -> str:
    if response is None:
        return "webhook response was absent"
    if hook.version != KNOWN_VERSIONS[0]:
        return ""
    if response.uid != uid:
        return f'expected response.uid="{uid}", got "{response.uid}"'
    if not may_patch:
        if response.patch:
            return "validating webhook may not return response.patch"
        return "" if response.patch_type is None else "validating webhook may not return response.patchType"
    if response.patch and response.patch_type is None:
        return "webhook returned response.patch but not response.patchType"
    if not response.patch and response.patch_type is not None:
        return "webhook returned response.patchType but not response.patch"
    return 'webhook returned invalid response.patchType of ""' if response.patch_type == "" else ""


def operations_of(hook: Hook, response: AdmissionResponse) -> Any:
    def undecodable(why: str) -> CallError:
        return CallError(hook.name, f"received undecodable patch in webhook response: {why}")

    try:
        operations = msgspec.json.decode(response.patch)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        first = response.patch.lstrip()[:1].decode(errors="replace")
        raise undecodable(f"invalid character '{first}' looking for beginning of value") from None
    if not isinstance(operations, list):
        what = {dict: "object", str: "string", bool: "bool"}.get(type(operations), "number")
        raise undecodable(f"json: cannot unmarshal {what} into Go value of type jsonpatch.Patch")
    if not operations:
        return None
    if response.patch_type not in (None, "JSONPatch"):
        raise CallError(hook.name, f'unsupported patch type "{response.patch_type}"')
    return operations


def patched(document: Any, operations: Any) -> bytes:
    """The document after the operations, as JSON. Raises StatusError 500."""
    try:
        return msgspec.json.encode(json_patch(document, operations))
    except StatusError as error:
        raise failed(error.causes[0].message if error.causes else error.message) from error


def failed(why: str) -> StatusError:
    """500, with what is wrong as a cause, too."""
    error = internal(why)
    error.causes = (Cause("", why),)
    return error


def cannot_change(hook: Hook) -> StatusError:
    return failed(
        f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for this '
        "operation"
    )


def denial(hook: str, status: Status | None) -> StatusError:
    """In the webhook's words, but never as a success."""
    said = status or Status()
    denied = f'admission webhook "{hook}" denied the request'
    why = said.message or said.reason
    details = said.details or StatusDetails()
    return StatusError(
        said.code if 400 <= said.code < 600 else 400,
        said.reason,
        f"{denied}: {why}" if why else f"{denied} without explanation",
        name=details.name,
        group=details.group,
        kind=details.kind,
        uid=details.uid,
        causes=[Cause(one.reason, one.message, one.field) for one in details.causes],
        retry_after_seconds=details.retry_after_seconds,
    )


def refusal_of(code: int, media_type: str, body: bytes) -> str:
    """What an HTTP status that is no success says, with the words of the body if it has any."""
    try:
        status = msgspec.json.decode(body, type=Status)
        if status.kind == "Status" and status.message:
            return status.message
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        pass
    is_text = not media_type or media_type.startswith("text/")
    said = body[:2048].decode(errors="replace").strip() if is_text else "unknown"
    if code in (403, 406, 415):
        return said
    if code in ANSWERS:
        return ANSWERS[code]
    if code >= 500:
        return f'an error on the server ("{said}") has prevented the request from succeeding'
    return f"the server responded with the status code {code} but did not return more information"


def annotate(annotations: dict[str, str], told: Mapping[str, str]) -> None:
    """Add to a request's audit annotations what is not said yet, within bounds."""
    size = sum(len(key) + len(value) for key, value in annotations.items())
    for key, value in told.items():
        size += len(key) + len(value)
        if size > MOST_ANNOTATED:
            return
        annotations.setdefault(key, value)
