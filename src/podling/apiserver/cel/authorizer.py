"""The variable `authorizer`: an expression asks whether somebody may do something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from podling.apiserver.cel.values import CelError, Meter, no_overload
from podling.apiserver.request.request import RequestInfo, User
from podling.model import names
from podling.model.types.rbac import AUTHENTICATED, SERVICE_ACCOUNTS


class AccessDecision(msgspec.Struct, frozen=True):
    cel_type: ClassVar[str] = "kubernetes.authorization.Decision"
    compares: ClassVar[bool] = False
    is_allowed: bool
    reason: str = ""


Ask = Callable[[User, RequestInfo], AccessDecision]
"""Asks the authorizers."""


class Asker(msgspec.Struct, frozen=True):
    cel_type: ClassVar[str] = "kubernetes.authorization.Authorizer"
    compares: ClassVar[bool] = False
    user: User
    ask: Ask


class PathCheck(msgspec.Struct, frozen=True):
    cel_type: ClassVar[str] = "kubernetes.authorization.PathCheck"
    compares: ClassVar[bool] = False
    authorizer: Asker
    path: str


class GroupCheck(msgspec.Struct, frozen=True):
    cel_type: ClassVar[str] = "kubernetes.authorization.GroupCheck"
    compares: ClassVar[bool] = False
    authorizer: Asker
    group: str


class ResourceCheck(msgspec.Struct, frozen=True):
    cel_type: ClassVar[str] = "kubernetes.authorization.ResourceCheck"
    compares: ClassVar[bool] = False
    authorizer: Asker
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""


def _text(function: str, value: Any, type_: type, *texts: Any) -> None:
    if type(value) is not type_ or any(type(text) is not str for text in texts):
        raise no_overload(function, value, *texts)


def path(meter: Meter, value: Any, text: Any) -> PathCheck:
    _text("path", value, Asker, text)
    if not text.strip():
        raise CelError("path must not be empty")
    return PathCheck(value, text)


def group(meter: Meter, value: Any, text: Any) -> GroupCheck:
    _text("group", value, Asker, text)
    return GroupCheck(value, text)


def service_account(meter: Meter, value: Any, namespace: Any, name: Any) -> Asker:
    _text("serviceAccount", value, Asker, namespace, name)
    if names.dns1123_subdomain(name):
        raise CelError("Invalid service account name")
    if names.dns1123_label(namespace):
        raise CelError("Invalid service account namespace")
    groups = SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", AUTHENTICATED
    return Asker(User(f"system:serviceaccount:{namespace}:{name}", groups), value.ask)


def resource(meter: Meter, value: Any, text: Any) -> ResourceCheck:
    _text("resource", value, GroupCheck, text)
    if not text.strip():
        raise CelError("resource must not be empty")
    return ResourceCheck(value.authorizer, value.group, text)


def _with(field: str) -> Callable[[Meter, Any, Any], ResourceCheck]:
    def change(meter: Meter, value: Any, text: Any) -> ResourceCheck:
        _text(field, value, ResourceCheck, text)
        changed: ResourceCheck = msgspec.structs.replace(value, **{field: text})
        return changed

    return change


def _selector(function: str) -> Callable[[Meter, Any, Any], ResourceCheck]:
    """No authorizer of podling decides by selectors, so they change no answer."""

    def select(meter: Meter, value: Any, text: Any) -> ResourceCheck:
        _text(function, value, ResourceCheck, text)
        kept: ResourceCheck = value
        return kept

    return select


def check(meter: Meter, value: Any, verb: Any) -> AccessDecision:
    if type(value) not in (PathCheck, ResourceCheck) or type(verb) is not str:
        raise no_overload("check", value, verb)
    if type(value) is PathCheck:
        info = RequestInfo(verb, value.path)
        asked: Asker = value.authorizer
        return asked.ask(asked.user, info)
    info = RequestInfo(
        verb,
        "",
        is_resource_request=True,
        api_group=value.group,
        api_version="*",
        namespace=value.namespace,
        resource=value.resource,
        subresource=value.subresource,
        name=value.name,
    )
    authorizer: Asker = value.authorizer
    return authorizer.ask(authorizer.user, info)


def _answer(function: str, value: Any) -> AccessDecision:
    if type(value) is not AccessDecision:
        raise no_overload(function, value)
    answer: AccessDecision = value
    return answer


def allowed(meter: Meter, value: Any) -> bool:
    return _answer("allowed", value).is_allowed


def reason(meter: Meter, value: Any) -> str:
    return _answer("reason", value).reason


def errored(meter: Meter, value: Any) -> bool:
    """The authorizers of podling decide, or have no opinion."""
    _answer("errored", value)
    return False


def error(meter: Meter, value: Any) -> str:
    _answer("error", value)
    return ""


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "path": path,
    "group": group,
    "serviceAccount": service_account,
    "resource": resource,
    "subresource": _with("subresource"),
    "namespace": _with("namespace"),
    "name": _with("name"),
    **{name: _selector(name) for name in ("fieldSelector", "labelSelector")},
    "check": check,
    "allowed": allowed,
    "reason": reason,
    "errored": errored,
    "error": error,
}
