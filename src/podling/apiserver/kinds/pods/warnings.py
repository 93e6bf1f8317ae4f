"""The Warning headers that the creation of a pod, or of an object with a pod template, is answered with:
deprecated labels and annotations, selectors that select nothing, duplicate or pointless ports, removed volume
plugins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice
from operator import itemgetter

from podling.apiserver.rules.addresses import warn_of_pod_ips
from podling.apiserver.rules.field import containers_with_paths
from podling.apiserver.rules.pod.annotations import APP_ARMOR, POD_SECCOMP, SECCOMP
from podling.apiserver.rules.scheduling import PREFERRED, RENAMED_LABELS, REQUIRED
from podling.apiserver.rules.volume.claims import STORAGE
from podling.model import names
from podling.model.quantity import Quantity
from podling.model.types.container import ContainerPort
from podling.model.types.pod import NodeSelectorTerm, Pod, PodSpec, PodTemplateSpec
from podling.model.types.volume import PersistentVolumeClaimSpec, Volume, VolumeProjection

DEPRECATED_LABELS = {
    key: f'deprecated since {since}; use "{label}" instead' for key, (since, label) in RENAMED_LABELS.items()
}
NO_SELECTOR = "a null labelSelector results in matching no pod"

_Known = tuple[int, ContainerPort, str]
"""The position, the port, and its path."""

GONE = {
    "photon_persistent_disk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "git_repo": ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    "scale_io": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}

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
"""The most warnings that fit into an answer. Pairs of ports could otherwise give as many as their number
squared."""


def warn_of_scheduling(spec: PodSpec, path: str) -> Iterator[str]:
    for key in spec.node_selector:
        if key in DEPRECATED_LABELS:
            yield f"{path}.nodeSelector[{key}]: {DEPRECATED_LABELS[key]}"
    if (affinity := spec.affinity) is not None:
        where = f"{path}.affinity"
        if (node := affinity.node_affinity) is not None:
            needed = node.required_during_scheduling_ignored_during_execution
            for i, term in enumerate(needed.node_selector_terms if needed is not None else ()):
                yield from warn_of_term(term, f"{where}.nodeAffinity.{REQUIRED}.nodeSelectorTerms[{i}]")
            for i, preferred in enumerate(node.preferred_during_scheduling_ignored_during_execution):
                yield from warn_of_term(
                    preferred.preference, f"{where}.nodeAffinity.{PREFERRED}[{i}].preference"
                )
        for wire, pods in (
            ("podAffinity", affinity.pod_affinity),
            ("podAntiAffinity", affinity.pod_anti_affinity),
        ):
            if pods is None:
                continue
            for i, near in enumerate(pods.required_during_scheduling_ignored_during_execution):
                if near.label_selector is None:
                    yield f"{where}.{wire}.{REQUIRED}[{i}].labelSelector: {NO_SELECTOR}"
            for i, weighted in enumerate(pods.preferred_during_scheduling_ignored_during_execution):
                if weighted.pod_affinity_term.label_selector is None:
                    yield f"{where}.{wire}.{PREFERRED}[{i}].podAffinityTerm.labelSelector: {NO_SELECTOR}"
    for i, constraint in enumerate(spec.topology_spread_constraints):
        where, key = f"{path}.topologySpreadConstraints[{i}]", constraint.topology_key
        if key in DEPRECATED_LABELS:
            yield f"{where}.topologyKey: {key} is {DEPRECATED_LABELS[key]}"
        if constraint.label_selector is None:
            yield f"{where}.labelSelector: {NO_SELECTOR}"


def warn_of_term(term: NodeSelectorTerm, path: str) -> Iterator[str]:
    for i, expression in enumerate(term.match_expressions):
        if expression.key in DEPRECATED_LABELS:
            why = f"{expression.key} is {DEPRECATED_LABELS[expression.key]}"
            yield f"{path}.matchExpressions[{i}].key: {why}"


def warn_of_ports(spec: PodSpec, root: str) -> Iterator[str]:
    known: defaultdict[tuple[int, str], _Same] = defaultdict(_Same)
    for container, path in containers_with_paths(spec, root):
        for i, port in enumerate(container.ports):
            where = f"{path}.ports[{i}]"
            if port.host_ip and not port.host_port:
                # The port as Go prints the struct.
                shown = (
                    f"{{Name:{port.name} HostPort:{port.host_port} ContainerPort:{port.container_port} "
                    f"Protocol:{port.protocol} HostIP:{port.host_ip}}}"
                )
                yield f"{where}: hostIP set without hostPort: {shown}"
            same = known[port.container_port, port.protocol]
            for _, other, earlier in same.conflicts(port):
                if (port.host_ip, port.host_port) == (other.host_ip, other.host_port):
                    what = "duplicate"
                elif not port.host_port or not other.host_port:
                    what = "overlapping"
                else:
                    what = "dangerously ambiguous"
                yield f"{where}: {what} port definition with {earlier}"
            same.add(port, where)


class _Same:
    """Ports of one number and protocol, indexed by what they may conflict in, so that the check
    stays linear."""

    def __init__(self) -> None:
        self._all: list[_Known] = []
        self._anywhere: list[_Known] = []
        self._of_any_address: defaultdict[int, list[_Known]] = defaultdict(list)
        self._of_address: defaultdict[tuple[str, int], list[_Known]] = defaultdict(list)

    def add(self, port: ContainerPort, where: str) -> None:
        known = len(self._all), port, where
        self._all.append(known)
        if not port.host_port:
            self._anywhere.append(known)
            return
        self._of_address[port.host_ip, port.host_port].append(known)
        if port.host_ip:
            self._of_any_address[port.host_port].append(known)

    def conflicts(self, port: ContainerPort) -> Iterable[_Known]:
        if not port.host_port:
            return self._all
        same = self._of_address.get((port.host_ip, port.host_port), [])
        without = self._of_address.get(("", port.host_port), [])
        ambiguous = without if port.host_ip else self._of_any_address.get(port.host_port, [])
        return merge(self._anywhere, same, ambiguous, key=itemgetter(0))


def warn_of_volumes(volumes: list[Volume], path: str) -> Iterator[str]:
    tokens: set[str] = set()
    for i, volume in enumerate(volumes):
        if volume.projected is not None:
            if any(source == VolumeProjection() for source in volume.projected.sources):
                yield f'volume "{volume.name}" (Projected) has no sources provided'
            given = (source.service_account_token for source in volume.projected.sources)
            tokens.update(token.path for token in given if token is not None)
            continue
        for attribute, (wire, why) in GONE.items():
            if getattr(volume, attribute) is not None:
                yield f"{path}[{i}].{wire}: {why}"
    for i, volume in enumerate(volumes if tokens else ()):
        for source in volume.projected.sources if volume.projected is not None else ():
            for where, file in _files(source):
                if file in tokens:
                    source_path = f"{path}[{i}].projected.sources.{where}"
                    yield f'{source_path}: has duplicated path with ServiceAccountToken "{file}"'


def _files(source: VolumeProjection) -> Iterator[tuple[str, str]]:
    if source.config_map is not None:
        yield from ((f"configMap[{j}]", item.path) for j, item in enumerate(source.config_map.items))
    if source.secret is not None:
        yield from ((f"secrets[{j}]", item.path) for j, item in enumerate(source.secret.items))
    if source.downward_api is not None:
        yield from ((f"downwardAPI[{j}]", item.path) for j, item in enumerate(source.downward_api.items))


def pod_warnings(pod: Pod) -> list[str]:
    of_spec = _warn_of_spec(pod.spec, pod.metadata.annotations, "")
    faults, of_name = names.dns1123_label(pod.metadata.name), []
    if faults:
        of_name.append(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(faults)}]"
        )
    return [*of_name, *islice(of_spec, MOST)]


def name_warnings(name: str) -> list[str]:
    """Of an object whose pods have its name in theirs."""
    if faults := names.dns1123_label(name):
        why = "this is used in Pod names and hostnames, which can result in surprising behavior"
        return [f"metadata.name: {why}; a DNS label is recommended: [{' '.join(faults)}]"]
    return []


def template_warnings(template: PodTemplateSpec, path: str) -> list[str]:
    """The warnings of a pod template, whose pods have no name yet."""
    return [*islice(_warn_of_spec(template.spec, template.metadata.annotations, f"{path}."), MOST)]


def _warn_of_spec(spec: PodSpec, annotations: Mapping[str, str], root: str) -> Iterator[str]:
    """`root`: the path before `spec` and `metadata`."""
    path = f"{root}spec"
    yield from warn_of_scheduling(spec, path)
    if annotations:
        yield from _warn_of_annotations(annotations, spec, f"{root}metadata.annotations")
    yield from warn_of_volumes(spec.volumes, f"{path}.volumes")
    if aliases := spec.host_aliases:
        yield from _warn_of_duplicates((alias.ip for alias in aliases), f"{path}.hostAliases", "ip")
    if secrets := [secret.name for secret in spec.image_pull_secrets]:
        yield from _warn_of_duplicates(secrets, f"{path}.imagePullSecrets", "name")
    for i, secret in enumerate(secrets):
        if not secret:
            yield f'{path}.imagePullSecrets[{i}].name: invalid empty name ""'
    yield from warn_of_fractions(spec.overhead, f"{path}.overhead")
    for container, where in containers_with_paths(spec, path):
        yield from warn_of_fractions(container.resources.limits, f"{where}.resources.limits")
        yield from warn_of_fractions(container.resources.requests, f"{where}.resources.requests")
        seen: set[str] = set()
        for i, variable in enumerate(container.env):
            if variable.name not in seen:
                seen.add(variable.name)
                continue
            # A later value that refers to the earlier one does not hide it.
            reference = f"$({variable.name})"
            refers = variable.value != reference and reference in variable.value
            if variable.value_from is not None or not refers:
                why = f'hides previous definition of "{variable.name}", which may be dropped when using apply'
                yield f"{where}.env[{i}]: {why}"
    yield from warn_of_ports(spec, path)
    if (spec.termination_grace_period_seconds or 0) < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {why}"
    yield from warn_of_pod_ips(spec, path)


def _warn_of_duplicates(values: Iterable[str], path: str, key: str) -> Iterator[str]:
    seen: set[str] = set()
    for i, value in enumerate(values):
        if value in seen:
            yield f'{path}[{i}].{key}: duplicate {key} "{value}"'
        seen.add(value)


def warn_of_fractions(
    amounts: Mapping[str, Quantity], path: str, of: Iterable[str] = _BYTES
) -> Iterator[str]:
    """`of`: the resources that are bytes."""
    for name in of if amounts else ():
        amount = amounts.get(name)
        if amount is not None and amount.nanos % _ONE:
            yield f'{path}[{name}]: fractional byte value "{amount}" is invalid, must be an integer'


def claim_warnings(spec: PersistentVolumeClaimSpec, path: str) -> list[str]:
    """`path`: of its resources."""
    amounts = spec.resources
    return [
        *warn_of_fractions(amounts.requests, f"{path}.requests", (STORAGE,)),
        *warn_of_fractions(amounts.limits, f"{path}.limits", (STORAGE,)),
    ]


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
