"""What a new pod may say but had better not: the Warning headers its creation is answered with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from podling.apiserver.registry.ip_addresses import warn_of_pod_ips
from podling.apiserver.registry.pod.annotations import APP_ARMOR, POD_SECCOMP, SECCOMP
from podling.apiserver.registry.pod.containers import containers_with_paths
from podling.apiserver.registry.pod.port_warnings import warn_of_ports
from podling.apiserver.registry.pod.scheduling_warnings import warn_of_scheduling
from podling.apiserver.registry.pod.volume_warnings import warn_of_volumes
from podling.model import names
from podling.model.container import EnvVar, EphemeralContainerCommon
from podling.model.pod import Pod, PodSpec, PodTemplateSpec
from podling.model.quantity import Quantity

DEPRECATED_ANNOTATIONS = {
    key: f'non-functional in {since}; use the "{field}" field instead'
    for key, since, field in (
        ("scheduler.alpha.kubernetes.io/critical-pod", "v1.16+", "priorityClassName"),
        ("security.alpha.kubernetes.io/sysctls", "v1.11+", "sysctls"),
        ("security.alpha.kubernetes.io/unsafe-sysctls", "v1.11+", "sysctls"),
    )
}
_ONE = 10**9
_BYTES = ("memory", "ephemeral-storage")


MOST = 4096
"""Warnings an answer has room for, however short they are. Ports may have as many as their number squared."""


def pod_warnings(pod: Pod) -> list[str]:
    of_spec = _warn_of_spec(pod.spec, pod.metadata.annotations, "")
    return [*_warn_of_name(pod.metadata.name), *islice(of_spec, MOST)]


def template_warnings(template: PodTemplateSpec, path: str) -> list[str]:
    """Of pods to be, which have no name yet."""
    return [*islice(_warn_of_spec(template.spec, template.metadata.annotations, f"{path}."), MOST)]


def _warn_of_name(name: str) -> Iterator[str]:
    faults = names.dns1123_label(name)
    if faults:
        yield (
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(faults)}]"
        )


def _warn_of_spec(spec: PodSpec, annotations: Mapping[str, str], root: str) -> Iterator[str]:
    """`root`: what comes before `spec` and `metadata` in a path."""
    path = f"{root}spec"
    yield from warn_of_scheduling(spec, path)
    if annotations:
        yield from _warn_of_annotations(annotations, spec, f"{root}metadata.annotations")
    yield from warn_of_volumes(spec.volumes, f"{path}.volumes")
    yield from _warn_of_duplicates((alias.ip for alias in spec.host_aliases), f"{path}.hostAliases", "ip")
    secrets = [secret.name for secret in spec.image_pull_secrets]
    yield from _warn_of_duplicates(secrets, f"{path}.imagePullSecrets", "name")
    for i, secret in enumerate(secrets):
        if not secret:
            yield f'{path}.imagePullSecrets[{i}].name: invalid empty name ""'
    yield from warn_of_fractions(spec.overhead, f"{path}.overhead")
    for container, where in containers_with_paths(spec, path):
        yield from _warn_of_container(container, where)
    yield from warn_of_ports(spec, path)
    yield from warn_of_pod_ips(spec, path)


def _warn_of_duplicates(values: Iterable[str], path: str, key: str) -> Iterator[str]:
    seen: set[str] = set()
    for i, value in enumerate(values):
        if value in seen:
            yield f'{path}[{i}].{key}: duplicate {key} "{value}"'
        seen.add(value)


def _warn_of_container(container: EphemeralContainerCommon, path: str) -> Iterator[str]:
    yield from warn_of_fractions(container.resources.limits, f"{path}.resources.limits")
    yield from warn_of_fractions(container.resources.requests, f"{path}.resources.requests")
    seen: set[str] = set()
    for i, variable in enumerate(container.env):
        if variable.name in seen and _hides(variable):
            why = f'hides previous definition of "{variable.name}", which may be dropped when using apply'
            yield f"{path}.env[{i}]: {why}"
        seen.add(variable.name)


def _hides(variable: EnvVar) -> bool:
    """Whether nothing of the variable's earlier value is in its new one."""
    reference = f"$({variable.name})"
    return variable.value_from is not None or variable.value == reference or reference not in variable.value


def warn_of_fractions(amounts: Mapping[str, Quantity], path: str) -> Iterator[str]:
    for name in _BYTES:
        amount = amounts.get(name)
        if amount is not None and amount.nanos % _ONE:
            yield f'{path}[{name}]: fractional byte value "{amount}" is invalid, must be an integer'


def _warn_of_annotations(annotations: Mapping[str, str], spec: PodSpec, path: str) -> Iterator[str]:
    for key, why in DEPRECATED_ANNOTATIONS.items():
        if key in annotations:
            yield f"{path}[{key}]: {why}"
    instead = 'non-functional in v1.27+; use the "seccompProfile" field instead'
    of_pod = spec.security_context.seccomp_profile if spec.security_context else None
    if POD_SECCOMP in annotations and of_pod is None:
        yield f"{path}[{POD_SECCOMP}]: {instead}"
    for container, _ in containers_with_paths(spec, "spec"):
        context, key = container.security_context, SECCOMP + container.name
        if key in annotations and (context is None or context.seccomp_profile is None):
            yield f"{path}[{key}]: {instead}"
        key = APP_ARMOR + container.name
        if key in annotations:
            why = 'deprecated since v1.30; use the "appArmorProfile" field instead'
            yield f"{path}[{key}]: {why}"
