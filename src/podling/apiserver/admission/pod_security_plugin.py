"""PodSecurity: what the labels of a namespace let its pods ask for.

`enforce` refuses pods, `audit` writes into the audit event, `warn` into the answer; objects with a template
of pods are warned of and audited only. A namespace whose label for `enforce` becomes stricter is warned of
those of its pods that would be refused now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

import msgspec
from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric

from podling.apiserver.admission.plugin import Attributes, Handles, Objects
from podling.apiserver.admission.pod_security import (
    LATEST,
    LEVELS,
    NEWEST,
    PRIVILEGED,
    RESTRICTED,
    JudgedPod,
    SecurityPolicy,
    Violation,
    faults,
)
from podling.apiserver.rules import field
from podling.model.errors import Cause, invalid
from podling.model.types.batch import CronJob
from podling.model.types.core import Namespace
from podling.model.types.pod import Pod, PodSpec, PodTemplate, PodTemplateSpec
from podling.process.waits import Turn

PREFIX = "pod-security.kubernetes.io/"
MODES = ENFORCE, AUDIT, WARN = ("enforce", "audit", "warn")
MOST_CHECKED = 3000
"""Pods of a namespace that are looked at when its label changes."""
CONTROLLERS = (
    "cronjobs.batch",
    "daemonsets.apps",
    "deployments.apps",
    "jobs.batch",
    "podtemplates",
    "replicasets.apps",
    "replicationcontrollers",
    "statefulsets.apps",
)


class SecurityPolicies(NamedTuple):
    """What holds for a namespace, for each of MODES."""

    enforce: SecurityPolicy = SecurityPolicy()
    audit: SecurityPolicy = SecurityPolicy()
    warn: SecurityPolicy = SecurityPolicy()


FREE, FREE_POLICY = SecurityPolicies(), str(SecurityPolicy())
"""Of most namespaces."""


class Exemptions(msgspec.Struct, frozen=True):
    usernames: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    runtime_classes: frozenset[str] = frozenset()


class PodSecurityOptions(msgspec.Struct, frozen=True):
    """`defaults`: of namespaces without labels."""

    defaults: SecurityPolicies = FREE
    exemptions: Exemptions = Exemptions()


NO_OPTIONS = PodSecurityOptions()


def level_fault(level: str) -> str:
    return "" if level in LEVELS else f"must be one of {', '.join(LEVELS)}"


def minor_of(version: str) -> int | None:
    """Of `latest` or `v1.36`; None for anything else."""
    if version == "latest":
        return LATEST
    digits = version.removeprefix("v1.")
    if digits == version or not (digits.isascii() and digits.isdigit()) or str(int(digits)) != digits:
        return None
    return int(digits)


def label_faults(labels: Mapping[str, str]) -> list[Cause]:
    found = []
    for mode in MODES:
        level, version = labels.get(PREFIX + mode), labels.get(f"{PREFIX}{mode}-version")
        if level is not None and (why := level_fault(level)):
            found.append(field.invalid(f"metadata.labels[{PREFIX}{mode}]", level, why))
        if version is not None and minor_of(version) is None:
            path = f"metadata.labels[{PREFIX}{mode}-version]"
            found.append(field.invalid(path, version, 'must be "latest" or "v1.x"'))
    return found


def policies_of(labels: Mapping[str, str], defaults: SecurityPolicies) -> SecurityPolicies:
    """What the labels of a namespace say. A level that there is not is the strictest to enforce, and none to
    audit and warn of."""
    said = {key: value for key, value in labels.items() if key.startswith(PREFIX)}
    if not said:
        return defaults

    def of(mode: str, default: SecurityPolicy, unknown: str) -> SecurityPolicy:
        level = said.get(PREFIX + mode, default.level)
        version = said.get(f"{PREFIX}{mode}-version")
        minor = default.minor if version is None else minor_of(version)
        return SecurityPolicy(level if level in LEVELS else unknown, LATEST if minor is None else minor)

    enforce = of(ENFORCE, defaults.enforce, RESTRICTED)
    warn = defaults.warn
    if PREFIX + ENFORCE in said and LEVELS.index(enforce.level) > LEVELS.index(warn.level):
        # Who makes a template is told of what its pods will be refused for.
        warn = enforce
    return SecurityPolicies(enforce, of(AUDIT, defaults.audit, PRIVILEGED), of(WARN, warn, PRIVILEGED))


def subject_of(obj: Any) -> JudgedPod | None:
    """The pod that an object is, or makes; None if it makes none."""
    template = obj if isinstance(obj, Pod) else template_of(obj)
    return None if template is None else JudgedPod(template.metadata.annotations, template.spec)


def template_of(obj: Any) -> PodTemplateSpec | None:
    if isinstance(obj, PodTemplate):
        return obj.template
    spec = obj.spec.job_template.spec if isinstance(obj, CronJob) else obj.spec
    template: PodTemplateSpec | None = spec.template
    return template


def is_significant(new: PodSpec, old: PodSpec) -> bool:
    """Whether a change of a pod is of what the rules look at: everything else of it may not change."""
    images = ({one.name: one.image for one in JudgedPod({}, spec).containers} for spec in (new, old))
    return next(images) != next(images)


class PodSecurity:
    handles: ClassVar[Handles] = {
        "namespaces": ("CREATE", "UPDATE"),
        "pods": ("CREATE", "UPDATE"),
        "pods/ephemeralcontainers": ("UPDATE",),
        **dict.fromkeys(CONTROLLERS, ("CREATE", "UPDATE")),
    }

    def __init__(self, objects: Objects, options: PodSecurityOptions = NO_OPTIONS) -> None:
        self._objects = objects
        self._options = options
        self._evaluations: Counter[tuple[str, ...]] = Counter()
        self._exemptions: Counter[tuple[str, ...]] = Counter()

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403, 422."""
        if isinstance(new, Namespace):
            await self._check_labels(attributes, new, old)
        elif exempt := self._exempt(attributes, new):
            self._exemptions[_labels(attributes)] += 1
            attributes.sent.annotations[f"{PREFIX}exempt"] = exempt
        else:
            self._judge(attributes, new, old)

    def _exempt(self, attributes: Attributes, new: Any) -> str:
        exempt = self._options.exemptions
        if attributes.namespace in exempt.namespaces:
            return "namespace"
        if attributes.user.name in exempt.usernames:
            return "user"
        if not exempt.runtime_classes:
            return ""
        template = new if isinstance(new, Pod) else template_of(new)
        is_exempt = template is not None and template.spec.runtime_class_name in exempt.runtime_classes
        return "runtimeClass" if is_exempt else ""

    def _judge(self, attributes: Attributes, new: Any, old: Any) -> None:
        namespace = self._objects.find(Namespace, "", attributes.namespace)
        labels = namespace.metadata.labels if namespace is not None else {}
        policies = policies_of(labels, self._options.defaults)
        is_pod = isinstance(new, Pod)
        if is_pod and policies == FREE:
            attributes.sent.annotations[f"{PREFIX}enforce-policy"] = FREE_POLICY
            self._evaluations["allow", ENFORCE, PRIVILEGED, "latest", *_labels(attributes)] += 1
            return
        if is_pod and old is not None and not is_significant(new.spec, old.spec):
            return
        if not is_pod and policies.audit.level == policies.warn.level == PRIVILEGED:
            return
        subject = subject_of(new)
        if subject is None:
            return
        sent, found = attributes.sent, {policy: _told(policy, faults(policy, subject)) for policy in policies}
        if audit := found[policies.audit]:
            sent.annotations[f"{PREFIX}audit-violations"] = f"would violate {audit}"
            self._count(attributes, AUDIT, policies.audit, is_denied=True)
        if is_pod:
            refused = found[policies.enforce]
            sent.annotations[f"{PREFIX}enforce-policy"] = str(policies.enforce)
            self._count(attributes, ENFORCE, policies.enforce, is_denied=bool(refused))
            if refused:
                raise attributes.forbidden(f"violates {refused}")
        if warned := found[policies.warn]:
            sent.warnings.append(f"would violate {warned}")
            self._count(attributes, WARN, policies.warn, is_denied=True)

    async def _check_labels(self, attributes: Attributes, new: Namespace, old: Namespace | None) -> None:
        labels, before = new.metadata.labels, {} if old is None else old.metadata.labels
        wrong = label_faults(labels)
        if wrong and not label_faults(before):
            raise invalid("Namespace", new.metadata.name, wrong)
        if old is None or wrong:
            return
        defaults = self._options.defaults
        policies, then = policies_of(labels, defaults), policies_of(before, defaults).enforce
        now = policies.enforce
        if now.level == PRIVILEGED or (
            now.minor == then.minor and LEVELS.index(now.level) <= LEVELS.index(then.level)
        ):
            return
        name = new.metadata.name
        if name in self._options.exemptions.namespaces:
            modes = zip(MODES, policies, strict=True)
            said = [f"{mode}={policy}" for mode, policy in modes if PREFIX + mode in labels]
            attributes.sent.warnings.append(
                f'namespace "{name}" is exempt from Pod Security, and the policy ({", ".join(said)}) '
                "will be ignored"
            )
        else:
            attributes.sent.warnings.extend(await self._violations(name, now))

    async def _violations(self, namespace: str, policy: SecurityPolicy) -> list[str]:
        """The pods that are there and would be refused, by what for."""
        exempt, turn = self._options.exemptions.runtime_classes, Turn()
        pods = _by_priority(self._objects.all(Pod, namespace))
        by_reason: dict[str, list[str]] = {}
        for pod in pods[:MOST_CHECKED]:
            await turn.share()
            if pod.spec.runtime_class_name in exempt:
                continue
            if found := faults(policy, JudgedPod(pod.metadata.annotations, pod.spec)):
                by_reason.setdefault(", ".join(one.reason for one in found), []).append(pod.metadata.name)
        told, listed = [], []
        if len(pods) > MOST_CHECKED:
            told.append(
                f"new PodSecurity enforce level only checked against the first {MOST_CHECKED} of {len(pods)} "
                "existing pods"
            )
        if by_reason:
            violate = f'violate the new PodSecurity enforce level "{policy}"'
            told.append(f'existing pods in namespace "{namespace}" {violate}')
        for reason, (first, *others) in by_reason.items():
            word = "pod" if len(others) == 1 else "pods"
            listed.append(
                f"{first} (and {len(others)} other {word}): {reason}" if others else f"{first}: {reason}"
            )
        return told + sorted(listed)

    def _count(self, attributes: Attributes, mode: str, policy: SecurityPolicy, *, is_denied: bool) -> None:
        decision = "deny" if is_denied else "allow"
        version = policy.version if policy.minor in (LATEST, *range(NEWEST + 1)) else "future"
        self._evaluations[(decision, mode, policy.level, version, *_labels(attributes))] += 1

    def metrics(self) -> Iterable[Metric]:
        of_request = ("request_operation", "resource", "subresource")
        evaluations = CounterMetricFamily(
            "pod_security_evaluations_total",
            "Pods and templates judged by a policy.",
            labels=["decision", "mode", "policy_level", "policy_version", *of_request],
        )
        exemptions = CounterMetricFamily(
            "pod_security_exemptions_total", "Requests that no policy judged.", labels=of_request
        )
        for family, counts in ((evaluations, self._evaluations), (exemptions, self._exemptions)):
            for labels, count in counts.items():
                family.add_metric(labels, count)
        return evaluations, exemptions


def _labels(attributes: Attributes) -> tuple[str, str, str]:
    resource = "pod" if attributes.resource.type is Pod else "controller"
    return attributes.operation.lower(), resource, attributes.subresource


def _told(policy: SecurityPolicy, found: list[Violation]) -> str:
    return f'PodSecurity "{policy}": {", ".join(map(str, found))}' if found else ""


def _by_priority(pods: Iterable[Pod]) -> list[Pod]:
    """Those that say most first: of the pods that one controller made all but one are alike."""
    first, alike, known = list[Pod](), list[Pod](), set[str]()
    for pod in pods:
        controller = next((one.uid for one in pod.metadata.owner_references if one.controller), "")
        (alike if controller in known else first).append(pod)
        if controller:
            known.add(controller)
    return first + alike
