"""Whose secrets the pods of an account use that says so; the words are Kubernetes'."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from podling.apiserver.admission.plugin import Attributes
from podling.apiserver.admission.pods import ServiceAccountCheck
from podling.apiserver.kinds.service_accounts import DEPRECATED, MOUNTABLE, ServiceAccounts
from podling.apiserver.request.request import User
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.scheme import resource_of
from podling.model.types.core import ServiceAccount
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod
from unit.apiserver.admission.sent import Itself

T = TypeVar("T", bound=KubeObject)
ACCOUNT: dict[str, Any] = {
    "metadata": {"name": "a", "annotations": {MOUNTABLE: "true"}},
    "secrets": [{"name": "own"}],
    "imagePullSecrets": [{"name": "pulls"}],
}
SUFFIX = "is not allowed because service account a does not reference that"


def uses(secret: str) -> dict[str, Any]:
    return {"name": "c", "env": [{"name": "V", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}}]}


def takes(secret: str) -> dict[str, Any]:
    return {"name": "c", "envFrom": [{"configMapRef": {"name": "m"}}, {"secretRef": {"name": secret}}]}


async def refusal(spec: dict[str, Any], account: dict[str, Any] | None = ACCOUNT, **pod: Any) -> str:
    """Of a new pod, or of one that is debugged; empty if it is let through."""

    def find(type: type[T], namespace: str, name: str) -> T | None:
        return None if account is None else from_data(account, type)

    operation, subresource = pod.pop("how", ("CREATE", ""))
    new = from_data({"spec": {"serviceAccountName": "a", **spec}, **pod}, Pod)
    attributes = Attributes(operation, resource_of(Pod), subresource, "n", "p", User("me"), "pods", Itself())
    try:
        await ServiceAccountCheck(find).admit(attributes, new, None)
    except StatusError as error:
        assert error.code == 403
        return error.message.removeprefix('pods "p" is forbidden: ')
    return ""


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"volumes": [{"name": "v", "secret": {"secretName": "own"}}]}, ""),
        (
            {"volumes": [{"name": "v", "secret": {"secretName": "other"}}]},
            f'volume with secret.secretName="other" {SUFFIX} secret',
        ),
        ({"containers": [uses("own"), takes("own")], "imagePullSecrets": [{"name": "pulls"}]}, ""),
        (
            {"containers": [uses("other")]},
            f'container c with envVar V referencing secret.secretName="other" {SUFFIX} secret',
        ),
        (
            {"initContainers": [takes("other")]},
            f'init container c with envFrom referencing secret.secretName="other" {SUFFIX} secret',
        ),
        (
            {"imagePullSecrets": [{"name": "pulls"}, {"name": "own"}]},
            f'imagePullSecrets[1].name="own" {SUFFIX} imagePullSecret',
        ),
        ({"ephemeralContainers": [uses("other")]}, ""),
    ],
)
async def test_a_new_pod(spec: dict[str, Any], why: str) -> None:
    assert await refusal(spec) == why


async def test_an_ephemeral_container() -> None:
    how = "UPDATE", "ephemeralcontainers"
    assert await refusal({"containers": [uses("other")]}, how=how) == ""
    why = f'ephemeral container c with envVar V referencing secret.secretName="other" {SUFFIX} secret'
    assert await refusal({"ephemeralContainers": [uses("other")]}, how=how) == why


@pytest.mark.parametrize("value", ["false", "yes", "", None])
async def test_other_accounts_are_let_use_any(value: str | None) -> None:
    annotations = {} if value is None else {MOUNTABLE: value}
    account = {**ACCOUNT, "metadata": {"name": "a", "annotations": annotations}}
    assert await refusal({"containers": [uses("other")]}, account) == ""


async def test_what_a_webhook_has_made_of_the_account() -> None:
    assert await refusal({}, None) == 'error looking up service account n/a: serviceaccount "a" not found'
    assert await refusal({"serviceAccountName": ""}) == "no service account specified for pod n/"
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    why = "a mirror pod may not reference service accounts"
    assert await refusal({}, None, metadata=mirror) == why
    assert await refusal({"serviceAccountName": ""}, None, metadata=mirror) == ""


def test_who_sets_the_annotation_is_warned() -> None:
    kind, marked = ServiceAccounts(), from_data(ACCOUNT, ServiceAccount)
    plain = from_data({"metadata": {"name": "a"}}, ServiceAccount)
    assert kind.create_warnings(marked) == kind.update_warnings(marked, plain) == [DEPRECATED]
    assert not kind.update_warnings(marked, marked) and not kind.create_warnings(plain)
