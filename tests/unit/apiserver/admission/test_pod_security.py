"""R-SYS-8: the Pod Security Standards, as labels of a namespace ask for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from podling.apiserver.admission.plugin import Attributes, Operation
from podling.apiserver.admission.pod_security import LATEST, NEWEST, JudgedPod, SecurityPolicy, faults
from podling.apiserver.admission.pod_security_plugin import (
    Exemptions,
    PodSecurity,
    PodSecurityOptions,
    SecurityPolicies,
    minor_of,
    policies_of,
)
from podling.apiserver.request.request import User
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.scheme import resource_of
from podling.model.types.apps import Deployment
from podling.model.types.core import Namespace
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.pod import Pod
from podling.model.types.volume import Volume
from unit.apiserver.admission.sent import Itself

PREFIX = "pod-security.kubernetes.io/"
PRIVILEGED = {"name": "c", "image": "i", "securityContext": {"privileged": True}}
REFUSED = (
    'PodSecurity "baseline:latest": privileged (container "c" must not set securityContext.privileged=true)'
)


def pod(name: str = "p", **spec: Any) -> Pod:
    data = {"metadata": {"name": name, "namespace": "ns"}, "spec": {"containers": [PRIVILEGED], **spec}}
    return json.from_data(data, Pod)


class Standing:
    """A namespace with labels, and its pods."""

    def __init__(self, labels: Mapping[str, str], pods: Iterable[Pod] = ()) -> None:
        said = {PREFIX + key: value for key, value in labels.items()}
        self.namespace = Namespace(metadata=ObjectMeta(name="ns", labels=said))
        self._pods = list(pods)

    def find(self, type: type[Any], namespace: str, name: str) -> Any:
        return self.namespace

    def all(self, type: type[Any], namespace: str = "") -> Iterable[Any]:
        return self._pods

    def changes(self, type: type[KubeObject]) -> int:
        return 0

    async def create(self, *_: Any) -> None:
        raise NotImplementedError

    async def change(self, *_: Any, **__: Any) -> None:
        raise AssertionError


def asked(plugin: PodSecurity, new: Any, old: Any = None, user: str = "me", subresource: str = "") -> Itself:
    operation: Operation = "CREATE" if old is None else "UPDATE"
    resource, sent = resource_of(type(new)), Itself()
    namespace = "" if isinstance(new, Namespace) else "ns"
    attributes = Attributes(
        operation, resource, subresource, namespace, new.metadata.name, User(user), resource.plural, sent=sent
    )
    asyncio.run(plugin.admit(attributes, new, old))
    return sent


def test_a_pod_that_a_level_forbids_is_refused_and_recorded() -> None:
    plugin = PodSecurity(Standing({"enforce": "baseline", "audit": "restricted", "audit-version": "v1.7"}))
    with pytest.raises(StatusError, match="violates PodSecurity") as refused:
        asked(plugin, pod())
    assert refused.value.code == 403
    assert str(refused.value) == f'pods "p" is forbidden: violates {REFUSED}'


def test_what_is_not_enforced_is_warned_of_and_audited() -> None:
    plugin = PodSecurity(Standing({"warn": "baseline", "audit": "baseline"}))
    sent = asked(plugin, pod())
    assert sent.warnings == [f"would violate {REFUSED}"]
    assert sent.annotations == {
        f"{PREFIX}audit-violations": f"would violate {REFUSED}",
        f"{PREFIX}enforce-policy": "privileged:latest",
    }


def test_a_template_is_warned_of_what_its_pods_are_refused_for() -> None:
    plugin = PodSecurity(Standing({"enforce": "baseline"}))
    made = Deployment(metadata=ObjectMeta(name="d", namespace="ns"))
    made.spec.template.spec = pod().spec
    assert asked(plugin, made) == Itself(warnings=[f"would violate {REFUSED}"], annotations={})


def test_a_change_that_no_rule_looks_at_is_not_judged() -> None:
    plugin = PodSecurity(Standing({"enforce": "baseline"}))
    changed = pod()
    changed.spec.active_deadline_seconds = 7
    assert not asked(plugin, changed, pod()).annotations
    changed.spec.containers[0].image = "j"
    with pytest.raises(StatusError):
        asked(plugin, changed, pod())


def test_a_new_ephemeral_container_is_judged() -> None:
    plugin = PodSecurity(Standing({"enforce": "baseline"}))
    old = pod(containers=[{"name": "a", "image": "i"}])
    new = pod(containers=[{"name": "a", "image": "i"}], ephemeralContainers=[PRIVILEGED])
    with pytest.raises(StatusError, match="violates"):
        asked(plugin, new, old, subresource="ephemeralcontainers")


def test_a_container_in_a_volume_is_judged() -> None:
    subject = pod(containers=[{"name": "a", "image": "i"}])
    privileged = pod().spec.containers[0]
    subject.spec.volumes = [Volume(name="v", container=privileged)]
    found = faults(SecurityPolicy("baseline"), JudgedPod({}, subject.spec))
    assert [one.reason for one in found] == ["privileged"]


@pytest.mark.parametrize(
    ("exempt", "why"),
    [
        (Exemptions(namespaces=frozenset({"ns"})), "namespace"),
        (Exemptions(usernames=frozenset({"me"})), "user"),
        (Exemptions(runtime_classes=frozenset({"rc"})), "runtimeClass"),
    ],
)
def test_who_is_exempt_is_not_judged(exempt: Exemptions, why: str) -> None:
    plugin = PodSecurity(Standing({"enforce": "baseline"}), PodSecurityOptions(exemptions=exempt))
    assert asked(plugin, pod(runtimeClassName="rc")).annotations == {f"{PREFIX}exempt": why}
    evaluations, exemptions = plugin.metrics()
    assert not evaluations.samples
    assert [one.value for one in exemptions.samples] == [1]


def test_pods_that_are_there_are_told_of_when_a_label_becomes_stricter() -> None:
    pods = [pod("b"), pod("a"), pod("c", hostPID=True), pod("d", containers=[{"name": "c", "image": "i"}])]
    standing = Standing({"enforce": "privileged"}, pods)
    new = Standing({"enforce": "baseline"}).namespace
    sent = asked(PodSecurity(standing), new, standing.namespace)
    assert sent.warnings == [
        'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"',
        "b (and 1 other pod): privileged",
        "c: host namespaces, privileged",
    ]
    assert not asked(PodSecurity(standing), standing.namespace, new).warnings


def test_labels_that_say_nothing_are_refused_once() -> None:
    wrong = Standing({"enforce": "x", "warn-version": "1.2"}).namespace
    plugin = PodSecurity(Standing({}))
    with pytest.raises(StatusError) as refused:
        asked(plugin, wrong)
    assert [cause.field for cause in refused.value.causes] == [
        f"metadata.labels[{PREFIX}enforce]",
        f"metadata.labels[{PREFIX}warn-version]",
    ]
    # Those that were there before there was a rule can be corrected one by one.
    assert not asked(plugin, wrong, wrong).warnings


def test_an_unknown_level_is_the_strictest_to_enforce() -> None:
    said = policies_of(
        {f"{PREFIX}enforce": "x", f"{PREFIX}audit": "x", f"{PREFIX}warn": "x"}, SecurityPolicies()
    )
    assert [policy.level for policy in said] == ["restricted", "privileged", "privileged"]


@pytest.mark.parametrize(
    ("version", "minor"),
    [
        ("latest", LATEST),
        ("v1.0", 0),
        ("v1.99", 99),
        ("v1.01", None),
        ("v1.", None),
        ("1.2", None),
        ("v1.²", None),
    ],
)
def test_versions(version: str, minor: int | None) -> None:
    assert minor_of(version) == minor


def test_a_version_to_come_has_the_newest_rules() -> None:
    subject = JudgedPod({}, pod().spec)
    known, to_come = (faults(SecurityPolicy("restricted", minor), subject) for minor in (NEWEST, NEWEST + 1))
    assert known == to_come == faults(SecurityPolicy("restricted"), subject)
