"""What the built-in admission plugins add to a pod, and what they refuse (R-SYS-4)."""

from __future__ import annotations

from typing import Any

import pytest

from podling.apiserver.admission.chain import built_in
from podling.apiserver.admission.plugin import Attributes, Operation
from podling.apiserver.admission.pod_security_plugin import PodSecurity
from podling.apiserver.admission.webhook_plugins import Webhooks
from podling.apiserver.authz.authorizers import NO_OPINION, Opinion
from podling.apiserver.authz.rbac import RbacAuthorizer
from podling.apiserver.request.request import RequestInfo, User
from podling.model.codec.json import from_data, to_data
from podling.model.errors import StatusError
from podling.model.scheme import resource_of
from podling.model.time import SystemClock
from podling.model.types.core import Namespace, ServiceAccount
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod
from unit.apiserver.admission.sent import Itself

STANDING: dict[tuple[type[KubeObject], str, str], KubeObject] = {
    (Namespace, "", "default"): from_data({"metadata": {"name": "default"}}, Namespace),
    (Namespace, "", "going"): from_data({"status": {"phase": "Terminating"}}, Namespace),
    (ServiceAccount, "default", "default"): ServiceAccount(),
    (ServiceAccount, "default", "puller"): from_data({"imagePullSecrets": [{"name": "s"}]}, ServiceAccount),
}


class Standing:
    """Objects that stand as they are."""

    def find(self, type: Any, namespace: str, name: str) -> Any:
        return STANDING.get((type, namespace, name))

    def all(self, type: Any, namespace: str = "") -> Any:
        return [one for (of, place, _), one in STANDING.items() if of is type and namespace in ("", place)]

    def changes(self, type: Any) -> int:
        return 0

    async def create(self, *_: Any) -> None:
        raise NotImplementedError

    async def change(self, *_: Any, **__: Any) -> None:
        raise AssertionError("nothing here is changed by admission")


def nobody_may(user: User, info: RequestInfo) -> Opinion:
    return NO_OPINION


async def admit(
    obj: KubeObject | None,
    old: KubeObject | None = None,
    operation: Operation = "CREATE",
    namespace: str = "default",
    subresource: str = "",
    name: str = "p",
) -> None:
    subject = obj or old
    assert subject is not None
    resource = resource_of(type(subject))
    target = f"{resource.qualified}/{subresource}" if subresource else resource.qualified
    attributes = Attributes(operation, resource, subresource, namespace, name, User("me"), target, Itself())
    standing = Standing()
    roles, webhooks = RbacAuthorizer(), Webhooks(standing, nobody_may)
    chain = built_in(standing, SystemClock(), nobody_may, roles, webhooks, PodSecurity(standing))
    await chain.admit(attributes, obj, old)


def pod(**spec: Any) -> Pod:
    return from_data({"spec": spec}, Pod)


async def test_a_pod_gets_account_priority_and_tolerations() -> None:
    new = pod()
    await admit(new)
    assert to_data(new.spec) == {
        "containers": [],
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{taint}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for taint in ("not-ready", "unreachable")
        ],
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }


async def test_pull_secrets_of_the_account_apply_to_a_pod_without_its_own() -> None:
    """R-EPH-5"""
    without, with_own = (
        pod(serviceAccountName="puller"),
        pod(serviceAccountName="puller", imagePullSecrets=[{"name": "o"}]),
    )
    await admit(without)
    await admit(with_own)
    assert [secret.name for secret in without.spec.image_pull_secrets] == ["s"]
    assert [secret.name for secret in with_own.spec.image_pull_secrets] == ["o"]


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        ([{"operator": "Exists"}], 0),
        ([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}], 1),
        ([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}], 2),
    ],
)
async def test_tolerations_of_ones_own_stand(tolerations: list[Any], added: int) -> None:
    new = pod(tolerations=tolerations)
    await admit(new)
    assert len(new.spec.tolerations) == len(tolerations) + added


async def test_a_critical_pod_has_the_number_of_its_class() -> None:
    new = pod(priorityClassName="system-node-critical")
    await admit(new)
    assert new.spec.priority == 2_000_001_000


async def test_an_update_may_leave_out_what_was_added() -> None:
    old, new = pod(), pod()
    await admit(old)
    await admit(new, old, "UPDATE")
    assert (new.spec.priority, new.spec.preemption_policy) == (0, "PreemptLowerPriority")
    assert new.spec.tolerations == old.spec.tolerations


async def test_subresources_are_left_alone() -> None:
    new = pod()
    await admit(new, pod(), "UPDATE", subresource="status")
    assert new == pod()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"serviceAccountName": "nobody"},
            'error looking up service account default/nobody: serviceaccount "nobody" not found',
        ),
        ({"priorityClassName": "high"}, "no PriorityClass with name high was found"),
        (
            {"priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; "
            "priority admission controller computed 0 from the given PriorityClass name",
        ),
    ],
)
async def test_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(StatusError) as refused:
        await admit(pod(**spec))
    assert refused.value.code == 403
    assert refused.value.message == f'pods "p" is forbidden: {message}'


async def test_a_namespace_must_be_there() -> None:
    with pytest.raises(StatusError, match='namespaces "nowhere" not found') as refused:
        await admit(pod(), namespace="nowhere")
    assert refused.value.code == 404


async def test_nothing_comes_to_be_in_a_namespace_that_is_going() -> None:
    with pytest.raises(StatusError) as refused:
        await admit(pod(), namespace="going")
    assert refused.value.code == 403
    assert [cause.reason for cause in refused.value.causes] == ["NamespaceTerminating"]


async def test_what_is_in_a_namespace_that_is_going_may_change_and_go() -> None:
    await admit(pod(), pod(), "UPDATE", namespace="going")
    await admit(None, pod(), "DELETE", namespace="going")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_stay(name: str) -> None:
    with pytest.raises(StatusError, match="this namespace may not be deleted"):
        await admit(None, Namespace(), "DELETE", namespace="", name=name)
    await admit(None, Namespace(), "DELETE", namespace="", name="other")
