"""The CRI's security contexts of a pod and its containers. Pure.

A field of the container's securityContext wins over the same field of the pod's. The check of runAsNonRoot
against the image's user is here, as only the kubelet knows that user.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.pod.containers import ConfigError
from podling.model.types.container import (
    AppArmorProfile,
    EphemeralContainerCommon,
    SeccompProfile,
    SecurityContext,
    SELinuxOptions,
)
from podling.model.types.pod import Pod, PodSecurityContext

T = TypeVar("T")

MASKED_PATHS = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
READ_ONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_PROFILE_TYPES = {
    "RuntimeDefault": pb.SecurityProfile.RuntimeDefault,
    "Unconfined": pb.SecurityProfile.Unconfined,
    "Localhost": pb.SecurityProfile.Localhost,
}
NODES_USERS = pb.UserNamespace(mode=pb.NODE)


class ImageUser(msgspec.Struct, frozen=True):
    """The user in an image's configuration: a uid, a name (resolved by the runtime), or neither (root)."""

    uid: int | None = None
    name: str = ""


UNSPECIFIED = ImageUser()


def namespace_options(pod: Pod, users: pb.UserNamespace, target_id: str = "") -> pb.NamespaceOption:
    """`target_id` is used only if containers have process namespaces of their own (R-EPH-4)."""
    spec = pod.spec
    shared = pb.POD if spec.share_process_namespace else pb.CONTAINER
    pid = pb.NODE if spec.host_pid else shared
    joins = bool(target_id) and pid == pb.CONTAINER
    return pb.NamespaceOption(
        network=pb.NODE if spec.host_network else pb.POD,
        ipc=pb.NODE if spec.host_ipc else pb.POD,
        pid=pb.TARGET if joins else pid,
        target_id=target_id if joins else "",
        userns_options=users,
    )


def container_security(
    pod: Pod,
    container: EphemeralContainerCommon,
    image_user: ImageUser,
    users: pb.UserNamespace,
    target_id: str,
    seccomp_dir: str,
) -> pb.LinuxContainerSecurityContext:
    """Raises ConfigError for runAsNonRoot if the user is root or is not known to be another."""
    own, of_pod = container.security_context or SecurityContext(), _pod_context(pod)
    user = _first(own.run_as_user, of_pod.run_as_user)
    if _first(own.run_as_non_root, of_pod.run_as_non_root):
        _verify_non_root(pod, container.name, user, image_user)
    seccomp = _first(own.seccomp_profile, of_pod.seccomp_profile)
    apparmor = _first(own.app_armor_profile, of_pod.app_armor_profile)
    made = pb.LinuxContainerSecurityContext(
        privileged=bool(own.privileged),
        namespace_options=namespace_options(pod, users, target_id),
        selinux_options=_selinux(_first(own.se_linux_options, of_pod.se_linux_options)),
        run_as_user=_int(image_user.uid if user is None else user),
        run_as_group=_int(_first(own.run_as_group, of_pod.run_as_group)),
        run_as_username=image_user.name if user is None and image_user.uid is None else "",
        readonly_rootfs=bool(own.read_only_root_filesystem),
        no_new_privs=own.allow_privilege_escalation is False,
        supplemental_groups=supplemental_groups(pod),
        supplemental_groups_policy=_groups_policy(of_pod),
        seccomp=_profile(seccomp or SeccompProfile(type="Unconfined"), f"{seccomp_dir}/"),
        # None leaves it to the runtime.
        apparmor=_profile(apparmor, "") if apparmor else None,
    )
    if own.capabilities:
        made.capabilities.add_capabilities.extend(own.capabilities.add)
        made.capabilities.drop_capabilities.extend(own.capabilities.drop)
    if own.proc_mount != "Unmasked":
        made.masked_paths.extend(MASKED_PATHS)
        made.readonly_paths.extend(READ_ONLY_PATHS)
    return made


def sandbox_security(pod: Pod, users: pb.UserNamespace) -> pb.LinuxSandboxSecurityContext:
    """Of the sandbox: the pod's own fields, and privileged if one of its containers is."""
    of_pod = _pod_context(pod)
    # Runtimes refuse a privileged container in a sandbox that is not privileged.
    containers = (*pod.spec.init_containers, *pod.spec.containers, *pod.spec.ephemeral_containers)
    return pb.LinuxSandboxSecurityContext(
        namespace_options=namespace_options(pod, users),
        privileged=any(
            c.security_context is not None and bool(c.security_context.privileged) for c in containers
        ),
        selinux_options=_selinux(of_pod.se_linux_options),
        run_as_user=_int(of_pod.run_as_user),
        run_as_group=_int(of_pod.run_as_group),
        supplemental_groups=supplemental_groups(pod),
        supplemental_groups_policy=_groups_policy(of_pod),
        seccomp=pb.SecurityProfile(profile_type=pb.SecurityProfile.RuntimeDefault),
    )


def supplemental_groups(pod: Pod) -> list[int]:
    of_pod = _pod_context(pod)
    own = [] if of_pod.fs_group is None else [of_pod.fs_group]
    return own + of_pod.supplemental_groups


def _verify_non_root(pod: Pod, container: str, user: int | None, image: ImageUser) -> None:
    meta = pod.metadata
    where = f'(pod: "{meta.name}_{meta.namespace}({meta.uid})", container: {container})'
    if user is not None:
        if user == 0:
            raise ConfigError(f"container's runAsUser breaks non-root policy {where}")
    elif image.uid == 0 or image == UNSPECIFIED:
        raise ConfigError(f"container has runAsNonRoot and image will run as root {where}")
    elif image.uid is None:
        raise ConfigError(
            f"container has runAsNonRoot and image has non-numeric user ({image.name}), "
            f"cannot verify user is non-root {where}"
        )


def _pod_context(pod: Pod) -> PodSecurityContext:
    return pod.spec.security_context or PodSecurityContext()


def _first(own: T | None, of_pod: T | None) -> T | None:
    return of_pod if own is None else own


def _int(value: int | None) -> pb.Int64Value | None:
    return None if value is None else pb.Int64Value(value=value)


def _groups_policy(context: PodSecurityContext) -> pb.SupplementalGroupsPolicy:
    return pb.Strict if context.supplemental_groups_policy == "Strict" else pb.Merge


def _selinux(options: SELinuxOptions | None) -> pb.SELinuxOption | None:
    if options is None:
        return None
    return pb.SELinuxOption(user=options.user, role=options.role, type=options.type, level=options.level)


def _profile(profile: SeccompProfile | AppArmorProfile, prefix: str) -> pb.SecurityProfile:
    """`prefix` is put before the name of a Localhost profile."""
    local = profile.localhost_profile if profile.type == "Localhost" else None
    return pb.SecurityProfile(
        profile_type=_PROFILE_TYPES[profile.type], localhost_ref=f"{prefix}{local}" if local else ""
    )
