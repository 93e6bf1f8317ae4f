"""Validation of the kinds that make pods from a template: Deployment, ReplicaSet, DaemonSet, StatefulSet,
ReplicationController and ControllerRevision (`pkg/apis/apps/validation` and `core/validation` of Kubernetes).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.rules.field import (
    all_invalid,
    at_least,
    forbidden,
    invalid,
    not_supported,
    required,
)
from podling.apiserver.rules.metadata import validate_label_selector
from podling.apiserver.rules.pod.spec import validate_pod_template
from podling.apiserver.rules.volume.claims import validate_claim_spec
from podling.model import names
from podling.model.errors import Cause
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.selectors import from_label_selector
from podling.model.types.apps import (
    DaemonSetSpec,
    DaemonSetUpdateStrategy,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSetSpec,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from podling.model.types.meta import LabelSelector
from podling.model.types.pod import PodTemplateSpec
from podling.model.types.replication_controller import ReplicationControllerSpec
from podling.model.types.volume import PersistentVolumeClaimVolumeSource, Volume

RECREATE, ROLLING, ON_DELETE = "Recreate", "RollingUpdate", "OnDelete"
RETAIN, DELETE = "Retain", "Delete"
LONGEST_NUMBER = 18
"""Digits of a percentage that are read."""
UNMATCHED = "`selector` does not match template `labels`"
_PERCENT = re.compile("[0-9]+%")
_NO_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_NO_DISK_FOR_MANY = (
    "must be true for replicated pods > 1; GCE PD can only be mounted on multiple machines if it is read-only"
)

CHANGEABLE = (
    "replicas",
    "ordinals",
    "template",
    "update_strategy",
    "revision_history_limit",
    "persistent_volume_claim_retention_policy",
    "min_ready_seconds",
)
_ONLY_THESE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def validate_deployment_spec(
    spec: DeploymentSpec, path: str, gates: Gates = DEFAULT_GATES
) -> Iterator[Cause]:
    yield from at_least(f"{path}.replicas", spec.replicas or 0, 0)
    yield from _validate_selector(spec.selector, path, "deployment")
    if _is_valid(spec.selector):
        yield from _validate_replicated(
            spec.template, spec.selector, spec.replicas, f"{path}.template", gates
        )
    yield from _validate_deployment_strategy(spec.strategy, f"{path}.strategy")
    yield from at_least(f"{path}.minReadySeconds", spec.min_ready_seconds, 0)
    if spec.revision_history_limit is not None:
        yield from at_least(f"{path}.revisionHistoryLimit", spec.revision_history_limit, 0)
    deadline = spec.progress_deadline_seconds
    if deadline is not None:
        yield from at_least(f"{path}.progressDeadlineSeconds", deadline, 0)
        if deadline <= spec.min_ready_seconds:
            yield invalid(f"{path}.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def validate_replica_set_spec(
    spec: ReplicaSetSpec, path: str, gates: Gates = DEFAULT_GATES
) -> Iterator[Cause]:
    yield from at_least(f"{path}.replicas", spec.replicas or 0, 0)
    yield from at_least(f"{path}.minReadySeconds", spec.min_ready_seconds, 0)
    yield from _validate_selector(spec.selector, path, "deployment")
    if _is_valid(spec.selector):
        yield from _validate_replicated(
            spec.template, spec.selector, spec.replicas, f"{path}.template", gates
        )


def validate_daemon_set_spec(spec: DaemonSetSpec, path: str, gates: Gates = DEFAULT_GATES) -> Iterator[Cause]:
    yield from validate_label_selector(spec.selector, f"{path}.selector")
    labels, template = spec.template.metadata.labels, f"{path}.template"
    if _is_valid(spec.selector) and not _selects(spec.selector, labels):
        yield invalid(f"{template}.metadata.labels", labels or None, UNMATCHED)
    if spec.selector is not None and _is_empty(spec.selector):
        yield invalid(f"{path}.selector", spec.selector, "empty selector is invalid for daemonset")
    yield from validate_pod_template(spec.template, template, gates)
    yield from _validate_long_running(spec.template, template, "DaemonSet")
    yield from at_least(f"{path}.minReadySeconds", spec.min_ready_seconds, 0)
    yield from _validate_daemon_strategy(spec.update_strategy, f"{path}.updateStrategy")
    if spec.revision_history_limit is not None:
        yield from at_least(f"{path}.revisionHistoryLimit", spec.revision_history_limit, 0)


def drop_unavailable(spec: StatefulSetSpec) -> None:
    """Clear the field behind the gate MaxUnavailableStatefulSet, which is off by default."""
    if spec.update_strategy.rolling_update is not None:
        spec.update_strategy.rolling_update.max_unavailable = None


def default_claims(spec: StatefulSetSpec) -> None:
    for claim in spec.volume_claim_templates:
        claim.kind, claim.api_version = claim.KIND, claim.API_VERSION
        claim.status.phase = claim.status.phase or "Pending"
        if claim.spec.volume_mode is None:
            claim.spec.volume_mode = "Filesystem"


def validate_stateful_set_spec(
    spec: StatefulSetSpec, path: str, gates: Gates = DEFAULT_GATES, *, changed: bool = False
) -> Iterator[Cause]:
    """`changed`: not that of a new object; what may not change then is not judged."""
    policy = spec.pod_management_policy
    if not policy:
        yield required(f"{path}.podManagementPolicy")
    elif policy not in ("OrderedReady", "Parallel"):
        yield invalid(f"{path}.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _validate_stateful_strategy(spec.update_strategy, path)
    retention = spec.persistent_volume_claim_retention_policy
    if retention is not None:
        for wire, value in (("whenDeleted", retention.when_deleted), ("whenScaled", retention.when_scaled)):
            where = f"{path}.persistentVolumeClaimRetentionPolicy.{wire}"
            if value not in (RETAIN, DELETE):
                yield not_supported(where, value, (RETAIN, DELETE))
    for i, claim in enumerate(spec.volume_claim_templates if not changed else ()):
        yield from validate_claim_spec(claim.spec, f"{path}.volumeClaimTemplates[{i}].spec")
    yield from at_least(f"{path}.replicas", spec.replicas or 0, 0)
    yield from at_least(f"{path}.minReadySeconds", spec.min_ready_seconds, 0)
    if spec.ordinals is not None:
        yield from at_least(f"{path}.ordinals.start", spec.ordinals.start, 0)
    if spec.service_name and not changed:
        faults = names.dns1123_label(spec.service_name)
        yield from all_invalid(f"{path}.serviceName", spec.service_name, faults)
    yield from _validate_selector(spec.selector, path, "statefulset", why="")
    template = f"{path}.template"
    if _is_valid(spec.selector):
        labels = spec.template.metadata.labels
        is_open = spec.selector is not None and _is_empty(spec.selector)
        if not is_open and not _selects(spec.selector, labels):
            yield invalid(f"{template}.metadata.labels", labels or None, UNMATCHED)
        yield from validate_pod_template(_with_claims(spec), template, gates)
    yield from _validate_long_running(spec.template, template, "StatefulSet")


def _with_claims(spec: StatefulSetSpec) -> PodTemplateSpec:
    """The template as pods are made of it: their claims come first, in place of volumes of their names, and
    their host names are the controller's to give."""
    names_of = dict.fromkeys(claim.metadata.name for claim in spec.volume_claim_templates)
    volumes = [
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name))
        for name in names_of
    ]
    volumes += (volume for volume in spec.template.spec.volumes if volume.name not in names_of)
    pod = msgspec.structs.replace(spec.template.spec, volumes=volumes, hostname="", subdomain="")
    return msgspec.structs.replace(spec.template, spec=pod)


def validate_replication_controller_spec(
    spec: ReplicationControllerSpec, path: str, gates: Gates = DEFAULT_GATES
) -> Iterator[Cause]:
    yield from at_least(f"{path}.minReadySeconds", spec.min_ready_seconds, 0)
    if not spec.selector:
        yield required(f"{path}.selector")
    yield from at_least(f"{path}.replicas", spec.replicas or 0, 0)
    if spec.template is None:
        yield required(f"{path}.template")
        return
    yield from _validate_replicated(
        spec.template, spec.selector, spec.replicas, f"{path}.template", gates, "ReplicationController"
    )


def _validate_replicated(
    template: PodTemplateSpec,
    selected: Mapping[str, str] | LabelSelector | None,
    replicas: int | None,
    path: str,
    gates: Gates = DEFAULT_GATES,
    owner: str = "ReplicaSet",
) -> Iterator[Cause]:
    """Faults of a template for any number of pods that run for ever. `selected`: what picks them; nothing
    that is empty is compared."""
    labels = template.metadata.labels
    if isinstance(selected, Mapping):
        matches = all(labels.get(key) == value for key, value in selected.items())
    else:
        matches = selected is not None and (_is_empty(selected) or _selects(selected, labels))
    if not matches:
        yield invalid(f"{path}.metadata.labels", labels or None, UNMATCHED)
    yield from validate_pod_template(template, path, gates)
    if (replicas or 0) > 1:
        yield from _validate_disks(template, path)
    yield from _validate_long_running(template, path, owner)


def _validate_long_running(template: PodTemplateSpec, path: str, owner: str) -> Iterator[Cause]:
    if template.spec.restart_policy != "Always":
        yield not_supported(f"{path}.spec.restartPolicy", template.spec.restart_policy, ("Always",))
    if template.spec.active_deadline_seconds is not None:
        why = f"activeDeadlineSeconds in {owner} is not Supported"
        yield forbidden(f"{path}.spec.activeDeadlineSeconds", why)


def _validate_disks(template: PodTemplateSpec, path: str) -> Iterator[Cause]:
    """A disk of GCE can be mounted by many pods only to be read."""
    for i, volume in enumerate(template.spec.volumes):
        disk = volume.gce_persistent_disk
        if disk is not None and not disk.read_only:
            where = f"{path}.spec.volumes[{i}].gcePersistentDisk.readOnly"
            yield invalid(where, disk.read_only, _NO_DISK_FOR_MANY)


def _validate_selector(
    selector: LabelSelector | None, path: str, owner: str, why: str = "invalid label selector"
) -> Iterator[Cause]:
    if selector is None:
        yield required(f"{path}.selector")
        return
    yield from validate_label_selector(selector, f"{path}.selector")
    if _is_empty(selector):
        yield invalid(f"{path}.selector", selector, f"empty selector is invalid for {owner}")
    elif not _is_valid(selector):
        yield invalid(f"{path}.selector", selector, why)


def _is_valid(selector: LabelSelector | None) -> bool:
    return next(iter(validate_label_selector(selector, "")), None) is None


def _is_empty(selector: LabelSelector) -> bool:
    return not selector.match_labels and not selector.match_expressions


def _selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    return from_label_selector(selector).matches(labels)


def _validate_deployment_strategy(strategy: DeploymentStrategy, path: str) -> Iterator[Cause]:
    rolling = strategy.rolling_update
    if strategy.type == RECREATE:
        if rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden(f"{path}.rollingUpdate", why)
    elif strategy.type != ROLLING:
        yield not_supported(path, _shown(strategy), (RECREATE, ROLLING))
    elif rolling is None:
        yield required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")
    else:
        where = f"{path}.rollingUpdate"
        unavailable = 0 if rolling.max_unavailable is None else rolling.max_unavailable
        yield from validate_amount(unavailable, f"{where}.maxUnavailable")
        surge = 0 if rolling.max_surge is None else rolling.max_surge
        yield from validate_amount(surge, f"{where}.maxSurge")
        if _amount(rolling.max_unavailable) == _amount(rolling.max_surge) == 0:
            why = "may not be 0 when `maxSurge` is 0"
            yield invalid(f"{where}.maxUnavailable", rolling.max_unavailable, why)
        yield from validate_share(unavailable, f"{where}.maxUnavailable")


class _Shown(msgspec.Struct, rename="pascal"):
    """A strategy in a message: Kubernetes validates types whose fields have no JSON names."""

    type: str
    rolling_update: Any = None


class _ShownRolling(msgspec.Struct, rename="pascal"):
    partition: int
    max_unavailable: int | str | None


class _ShownAmounts(msgspec.Struct, rename="pascal"):
    max_unavailable: int | str
    max_surge: int | str


def _shown(strategy: DeploymentStrategy | DaemonSetUpdateStrategy | StatefulSetUpdateStrategy) -> _Shown:
    rolling: Any = strategy.rolling_update
    if isinstance(strategy, StatefulSetUpdateStrategy):
        rolling = rolling and _ShownRolling(rolling.partition or 0, rolling.max_unavailable)
    else:
        rolling = rolling and _ShownAmounts(rolling.max_unavailable or 0, rolling.max_surge or 0)
    return _Shown(strategy.type, rolling)


def _validate_daemon_strategy(strategy: DaemonSetUpdateStrategy, path: str) -> Iterator[Cause]:
    rolling = strategy.rolling_update
    if strategy.type == ON_DELETE:
        return
    if strategy.type != ROLLING:
        yield not_supported(path, _shown(strategy), (ROLLING, ON_DELETE))
    elif rolling is None:
        yield required(f"{path}.rollingUpdate")
    else:
        where = f"{path}.rollingUpdate"
        unavailable = 0 if rolling.max_unavailable is None else rolling.max_unavailable
        surge = 0 if rolling.max_surge is None else rolling.max_surge
        for judge in (validate_amount, validate_share):
            yield from judge(unavailable, f"{where}.maxUnavailable")
            yield from judge(surge, f"{where}.maxSurge")
        has_unavailable, has_surge = _amount(unavailable) != 0, _amount(surge) != 0
        if has_unavailable and has_surge:
            why = "may not be set when maxUnavailable is non-zero"
            yield invalid(f"{where}.maxSurge", surge, why)
        elif not has_unavailable and not has_surge:
            yield required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _validate_stateful_strategy(strategy: StatefulSetUpdateStrategy, path: str) -> Iterator[Cause]:
    where, rolling = f"{path}.updateStrategy.rollingUpdate", strategy.rolling_update
    if not strategy.type:
        yield required(f"{path}.updateStrategy")
    elif strategy.type == ON_DELETE:
        if rolling is not None:
            why = "only allowed for updateStrategy 'RollingUpdate'"
            yield invalid(where, _shown(strategy).rolling_update, why)
    elif strategy.type != ROLLING:
        yield invalid(f"{path}.updateStrategy", _shown(strategy), "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None:
        yield from at_least(f"{where}.partition", rolling.partition or 0, 0)


def validate_amount(value: int | str, path: str) -> Iterator[Cause]:
    """Faults of a number or a percentage."""
    if isinstance(value, int):
        yield from at_least(path, value, 0)
    elif not _PERCENT.fullmatch(value):
        yield invalid(path, value, _NO_PERCENT)


def validate_share(value: int | str, path: str) -> Iterator[Cause]:
    """A fault of a percentage above 100."""
    if isinstance(value, str) and _PERCENT.fullmatch(value) and _amount(value) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def _amount(value: int | str | None) -> int:
    """The number, also that of a percentage; 0 for what is neither."""
    if isinstance(value, str):
        number = value.removesuffix("%")
        # A number of more digits is more than anything it is compared with, and dear to read.
        if not (number.isascii() and number.isdecimal()):
            return 0
        number = number.lstrip("0") or "0"
        return int(number) if len(number) <= LONGEST_NUMBER else 10**LONGEST_NUMBER
    return value or 0


def validate_stateful_change(new: StatefulSetSpec, old: StatefulSetSpec, path: str) -> Iterator[Cause]:
    kept = {name: getattr(old, name) for name in CHANGEABLE}
    if msgspec.structs.replace(new, **kept) != old:
        yield forbidden(path, _ONLY_THESE)


class Bounds(NamedTuple):
    """What of a status is counted, by wire name, and which counts another one bounds: (count, bound, the
    bound's name in the message)."""

    counts: tuple[str, ...]
    within: tuple[tuple[str, str, str], ...] = ()


def validate_status(status: msgspec.Struct, bounds: Bounds) -> Iterator[Cause]:
    values = {field.encode_name: getattr(status, field.name) for field in msgspec.structs.fields(status)}
    for wire in bounds.counts:
        if values[wire] is not None:
            yield from at_least(f"status.{wire}", values[wire], 0)
    for wire, bound, name in bounds.within:
        if values[wire] > values[bound]:
            yield invalid(f"status.{wire}", values[wire], f"cannot be greater than {name}")


def validate_collisions(new: int | None, old: int | None) -> Iterator[Cause]:
    """A count of collisions only grows."""
    if old is not None and new is not None and new < old:
        yield invalid("status.collisionCount", new, "cannot be decremented")
    elif old is not None and new is None:
        yield invalid("status.collisionCount", 0, "cannot be decremented")
