"""ServiceAccounts, and their subresource `token`, which issues a token for a limited time.

A token may be bound to a pod, secret or node; it is good only while that object exists.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from podling.apiserver.authn.tokens import Binding, Grant, Named, ServiceAccountTokens
from podling.apiserver.authz.authorizers import AccessReviewer
from podling.apiserver.kinds.columns import AGE, NAME, age
from podling.apiserver.kinds.kind import Answer, Kind
from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import invalid
from podling.model.errors import Cause, bad_request, conflict, not_found
from podling.model.scheme import resource_of
from podling.model.time import rfc3339
from podling.model.types.core import (
    BoundObjectReference,
    Secret,
    ServiceAccount,
    TokenRequest,
    TokenRequestStatus,
)
from podling.model.types.meta import KubeObject
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.model.types.references import ObjectReference

DEFAULT_SECONDS = 3600
SHORTEST, LONGEST = 600, 1 << 32
EXTENDED_SECONDS = 3607
"""The lifetime that volumes of pods ask for. Such a token gets EXTENSION in fact, for programs that read it
once and never again."""
EXTENSION = timedelta(days=365)
REPLACED = (
    "the UID in the bound object reference ({}) does not match the UID in record. "
    "The object might have been deleted and then recreated"
)

MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"
"""The annotation of an account whose pods use only the secrets that it names."""
DEPRECATED = (
    f"metadata.annotations[{MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access "
    "to mounted secrets"
)

T = TypeVar("T", bound=KubeObject)


class TokenRequests(Answer[ServiceAccount]):
    name = "token"
    body = TokenRequest
    misnamed = "must match the service account name if specified"
    replaced = "the UID in the token request ({}) does not match the UID of the service account ({})"

    def default(self, body: Any) -> None:
        if body.spec.expiration_seconds is None:
            body.spec.expiration_seconds = DEFAULT_SECONDS

    def validate(self, obj: TokenRequest) -> list[Cause]:
        seconds, path = obj.spec.expiration_seconds, "spec.expirationSeconds"
        if seconds is not None and seconds < SHORTEST:
            return [invalid(path, seconds, "may not specify a duration less than 10 minutes")]
        if seconds is not None and seconds > LONGEST:
            return [invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
        return []

    def answer(self, obj: ServiceAccount, body: Any, reviewer: AccessReviewer, now: datetime) -> None:
        tokens, spec = reviewer.tokens, body.spec
        spec.audiences = spec.audiences or list(tokens.audiences)
        ends = now + timedelta(seconds=spec.expiration_seconds)
        binding, lifetime = _binding(obj, spec.bound_object_ref, tokens), ends - now
        # A token with the lifetime of volumes, for a pod and this API server, lives longer than asked for.
        # Its claims say when it should have been renewed.
        is_of_volume = binding.pod is not None and lifetime == timedelta(seconds=EXTENDED_SECONDS)
        if is_of_volume and set(spec.audiences) <= set(tokens.audiences):
            binding = msgspec.structs.replace(binding, warnafter=int(ends.timestamp()))
            lifetime = EXTENSION
        grant = Grant(binding, spec.audiences, lifetime)
        body.status = TokenRequestStatus(tokens.issue(grant, now), rfc3339(ends))


def _binding(
    account: ServiceAccount, reference: BoundObjectReference | None, tokens: ServiceAccountTokens
) -> Binding:
    """The account and the object that the token is bound to. Raises StatusError 404, 400, 409."""
    namespace = account.metadata.namespace
    plain = Binding(namespace, _named(account))
    if reference is None:
        return plain
    group, version = _group_version(reference.api_version)
    # Of what the core group has, the version is not looked at.
    if group or reference.kind not in ("Pod", "Node", "Secret"):
        what = f"{group}/{version}, Kind={reference.kind}"
        raise bad_request(f"cannot bind token to object of type {what}")
    match reference.kind:
        case "Pod":
            pod = _found(tokens, Pod, namespace, reference)
            if pod.spec.service_account_name != account.metadata.name:
                raise bad_request(
                    f'cannot bind token for serviceaccount "{account.metadata.name}" to pod running with '
                    "different serviceaccount name."
                )
            name = pod.spec.node_name
            running_on = tokens.find(Node, "", name) if name else None
            node = _named(running_on) if running_on is not None else Named(name) if name else None
            return msgspec.structs.replace(plain, pod=_named(pod), node=node)
        case "Node":
            return msgspec.structs.replace(plain, node=_named(_found(tokens, Node, "", reference)))
        case _:
            return msgspec.structs.replace(plain, secret=_named(_found(tokens, Secret, namespace, reference)))


def _group_version(api_version: str) -> tuple[str, str]:
    """What is no version of a group is read as none at all."""
    if api_version.count("/") > 1:
        return "", ""
    group, _, version = api_version.rpartition("/")
    return group, version


def _found(
    tokens: ServiceAccountTokens, type_: type[T], namespace: str, reference: BoundObjectReference
) -> T:
    if not reference.name:
        raise bad_request("Name parameter required.")
    metadata.check_name(reference.name)
    found = tokens.find(type_, namespace, reference.name)
    if found is None:
        raise not_found(resource_of(type_).plural, reference.name)
    if reference.uid and reference.uid != found.metadata.uid:
        raise conflict(reference.kind, reference.name, REPLACED.format(reference.uid))
    return found


def _named(obj: KubeObject) -> Named:
    return Named(obj.metadata.name, obj.metadata.uid)


class ServiceAccounts(Kind[ServiceAccount]):
    resource = resource_of(ServiceAccount)
    returns_deleted = True
    subresources = {"token": TokenRequests()}
    columns = (NAME, AGE)

    def prepare_create(self, obj: ServiceAccount, now: datetime) -> None:
        # A secret is that of the account's namespace and this name, whatever else is said of it.
        obj.secrets = [ObjectReference(name=secret.name) for secret in obj.secrets]

    def prepare_update(self, new: ServiceAccount, old: ServiceAccount) -> None:
        self.prepare_create(new, datetime.min)

    def validate(self, obj: ServiceAccount) -> list[Cause]:
        return metadata.validate(obj.metadata)

    def warnings(self, obj: ServiceAccount) -> list[str]:
        return [DEPRECATED] if MOUNTABLE in obj.metadata.annotations else []

    def update_warnings(self, obj: ServiceAccount, old: ServiceAccount) -> list[str]:
        return [] if MOUNTABLE in old.metadata.annotations else self.warnings(obj)

    def row(self, obj: ServiceAccount, now: datetime) -> list[Any]:
        return [obj.metadata.name, age(obj.metadata.creation_timestamp, now)]
