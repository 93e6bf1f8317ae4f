"""Defaults of pods, containers, probes and volumes (Kubernetes' `SetDefaults_…`). Objects are changed in
place.

Pods and pod templates share `default_pod_spec`; `default_pod` adds what applies to a pod and not to a
template.
"""

from __future__ import annotations

from podling.model.quantity import Quantity
from podling.model.rules.image import LATEST, tag_of
from podling.model.rules.resources import (
    HUGE_PAGES,
    container_limits,
    container_requests,
    is_supported_at_pod_level,
    volume_containers,
)
from podling.model.types.container import (
    EphemeralContainerCommon,
    HTTPGetAction,
    Probe,
    ResourceList,
    ResourceRequirements,
)
from podling.model.types.persistent_volume import PersistentVolumeSpec
from podling.model.types.pod import Pod, PodSecurityContext, PodSpec
from podling.model.types.references import ResourceFieldSelector
from podling.model.types.volume import (
    DownwardAPIVolumeFile,
    EmptyDirVolumeSource,
    PersistentVolumeClaimSpec,
    Volume,
)

TERMINATION_MESSAGE_PATH = "/dev/termination-log"
TERMINATION_MESSAGE_POLICY = "File"
RESTART_POLICY = "Always"
DNS_POLICY = "ClusterFirst"
GRACE_PERIOD_SECONDS = 30
SCHEDULER = "default-scheduler"
SHARED = ("cpu", "memory")
"""Resources that all containers of a pod share when `spec.resources` limits them; huge pages are not shared.
"""
FILE_MODE = 0o644
FILESYSTEM = "Filesystem"
TOKEN_SECONDS = 3600
SOURCES = tuple(field for field in Volume.__struct_fields__ if field != "name")
"""The attributes of `Volume` that are volume sources: a volume has exactly one of them."""


def default_amounts(*lists: ResourceList) -> None:
    """Round up to thousandths (`SetDefaults_ResourceList`)."""
    for amounts in lists:
        for name, amount in amounts.items():
            amounts[name] = amount.in_milli()


def default_container(container: EphemeralContainerCommon) -> None:
    container.image_pull_policy = container.image_pull_policy or pull_policy(container.image)
    container.termination_message_path = container.termination_message_path or TERMINATION_MESSAGE_PATH
    container.termination_message_policy = container.termination_message_policy or TERMINATION_MESSAGE_POLICY
    default_amounts(container.resources.limits, container.resources.requests)
    for port in container.ports:
        port.protocol = port.protocol or "TCP"
    for source in filter(None, (variable.value_from for variable in container.env)):
        if source.field_ref is not None:
            source.field_ref.api_version = source.field_ref.api_version or "v1"
        _default_divisor(source.resource_field_ref)
        if source.file_key_ref is not None and source.file_key_ref.optional is None:
            source.file_key_ref.optional = False
    for probe in (container.liveness_probe, container.readiness_probe, container.startup_probe):
        if probe is not None:
            default_probe(probe)
    hooks = (container.lifecycle.post_start, container.lifecycle.pre_stop) if container.lifecycle else ()
    for hook in filter(None, hooks):
        _default_http_get(hook.http_get)


def pull_policy(image: str) -> str:
    """The default imagePullPolicy: Always for the tag `latest`, also where it goes without saying."""
    return "Always" if tag_of(image) == LATEST else "IfNotPresent"


def default_probe(probe: Probe) -> None:
    probe.timeout_seconds = probe.timeout_seconds or 1
    probe.period_seconds = probe.period_seconds or 10
    probe.success_threshold = probe.success_threshold or 1
    probe.failure_threshold = probe.failure_threshold or 3
    _default_http_get(probe.http_get)
    if probe.grpc is not None and probe.grpc.service is None:
        probe.grpc.service = ""


def _default_http_get(action: HTTPGetAction | None) -> None:
    if action is not None:
        action.path = action.path or "/"
        action.scheme = action.scheme or "HTTP"


def default_volume(volume: Volume) -> None:
    if all(getattr(volume, source) is None for source in SOURCES):
        volume.empty_dir = EmptyDirVolumeSource()
    if volume.image is not None and not volume.image.pull_policy:
        volume.image.pull_policy = pull_policy(volume.image.reference)
    for source in (volume.secret, volume.config_map, volume.downward_api, volume.projected):
        if source is not None and source.default_mode is None:
            source.default_mode = FILE_MODE
    if volume.downward_api is not None:
        _default_files(volume.downward_api.items)
    for part in volume.projected.sources if volume.projected else ():
        if part.downward_api is not None:
            _default_files(part.downward_api.items)
        token = part.service_account_token
        if token is not None and token.expiration_seconds is None:
            token.expiration_seconds = TOKEN_SECONDS
    if volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
        default_claim(volume.ephemeral.volume_claim_template.spec)
    if volume.container is not None:
        default_container(volume.container)
    default_drivers(volume)


def _default_files(files: list[DownwardAPIVolumeFile]) -> None:
    for file in files:
        if file.field_ref is not None:
            file.field_ref.api_version = file.field_ref.api_version or "v1"
        _default_divisor(file.resource_field_ref)


def _default_divisor(amount: ResourceFieldSelector | None) -> None:
    if amount is not None and amount.divisor is None:
        amount.divisor = Quantity()


def default_claim(claim: PersistentVolumeClaimSpec) -> None:
    if claim.volume_mode is None:
        claim.volume_mode = FILESYSTEM
    default_amounts(claim.resources.limits, claim.resources.requests)


def default_drivers(volume: Volume | PersistentVolumeSpec) -> None:
    """Of the sources that a pod and a PersistentVolume have in common."""
    if volume.host_path is not None and volume.host_path.type is None:
        volume.host_path.type = ""
    if volume.iscsi is not None:
        volume.iscsi.iscsi_interface = volume.iscsi.iscsi_interface or "default"
    if volume.rbd is not None:
        volume.rbd.pool = volume.rbd.pool or "rbd"
        volume.rbd.user = volume.rbd.user or "admin"
        volume.rbd.keyring = volume.rbd.keyring or "/etc/ceph/keyring"
    if volume.azure_disk is not None:
        disk = volume.azure_disk
        disk.caching_mode = "ReadWrite" if disk.caching_mode is None else disk.caching_mode
        disk.fs_type = disk.fs_type or "ext4"
        disk.read_only = disk.read_only or False
        disk.kind = "Shared" if disk.kind is None else disk.kind
    if volume.scale_io is not None:
        volume.scale_io.storage_mode = volume.scale_io.storage_mode or "ThinProvisioned"
        volume.scale_io.fs_type = volume.scale_io.fs_type or "xfs"


def default_pod(pod: Pod) -> None:
    spec = pod.spec
    default_pod_spec(spec)
    if (spec.termination_grace_period_seconds or 0) < 0:
        spec.termination_grace_period_seconds = 1
    for container in (*volume_containers(spec), *spec.init_containers, *spec.containers):
        resources = container.resources
        missing = {name: limit for name, limit in resources.limits.items() if name not in resources.requests}
        if missing:
            resources.requests = {**resources.requests, **missing}
        for port in container.ports if spec.host_network else ():
            port.host_port = port.host_port or port.container_port
    if spec.resources is not None and (spec.resources.limits or spec.resources.requests):
        _limit_pages_of_the_whole(spec, spec.resources)
        if spec.resources.limits:
            _request_for_the_whole(spec, spec.resources)
    if spec.enable_service_links is None:
        spec.enable_service_links = True


def default_pod_spec(spec: PodSpec) -> None:
    spec.restart_policy = spec.restart_policy or RESTART_POLICY
    spec.dns_policy = spec.dns_policy or DNS_POLICY
    spec.scheduler_name = spec.scheduler_name or SCHEDULER
    if spec.termination_grace_period_seconds is None:
        spec.termination_grace_period_seconds = GRACE_PERIOD_SECONDS
    if spec.security_context is None:
        spec.security_context = PodSecurityContext()
    # `serviceAccount` is the deprecated name of `serviceAccountName`, which wins.
    spec.service_account_name = spec.service_account_name or spec.service_account
    spec.service_account = spec.service_account_name
    default_amounts(spec.overhead)
    if spec.resources is not None:
        default_amounts(spec.resources.limits, spec.resources.requests)
    for container in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers):
        default_container(container)
    for volume in spec.volumes:
        default_volume(volume)


def _limit_pages_of_the_whole(spec: PodSpec, whole: ResourceRequirements) -> None:
    """Pod-level limits of huge pages of which `spec.resources` says nothing: those of the containers."""
    missing = {
        name: limit
        for name, limit in container_limits(spec).items()
        if name.startswith(HUGE_PAGES) and name not in whole.requests
    }
    whole.limits = missing | whole.limits


def _request_for_the_whole(spec: PodSpec, whole: ResourceRequirements) -> None:
    """Pod-level requests that `spec.resources` leaves out: those of the containers, else the pod's limits."""
    together = container_requests(spec)
    missing = {
        name: together.get(name, limit) if name in SHARED else limit
        for name, limit in whole.limits.items()
        if is_supported_at_pod_level(name)
    }
    missing |= {name: amount for name, amount in together.items() if name in SHARED}
    whole.requests = missing | whole.requests
