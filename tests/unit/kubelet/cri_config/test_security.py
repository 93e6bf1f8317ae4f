from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.cri_config.security import (
    NODES_USERS,
    ImageUser,
    container_security,
    namespace_options,
    sandbox_security,
)
from podling.kubelet.pod.containers import ConfigError
from podling.model.types.container import AppArmorProfile, Capabilities, SeccompProfile, SecurityContext
from podling.model.types.pod import PodSecurityContext

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

NAMESPACES = [
    # spec                                                        target  pid            network  ipc
    ({},                                                          "",     pb.CONTAINER,  pb.POD,  pb.POD),
    ({"share_process_namespace": True},                           "",     pb.POD,        pb.POD,  pb.POD),
    ({"host_pid": True, "host_network": True, "host_ipc": True},  "",     pb.NODE,       pb.NODE, pb.NODE),
    ({},                                                          "a-0",  pb.TARGET,     pb.POD,  pb.POD),
    ({"share_process_namespace": True},                           "a-0",  pb.POD,        pb.POD,  pb.POD),
    ({"host_pid": True},                                          "a-0",  pb.NODE,       pb.POD,  pb.POD),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "target", "pid", "network", "ipc"), NAMESPACES)
def test_namespaces(
    scene: type[Scene], spec: dict[str, Any], target: str, pid: int, network: int, ipc: int
) -> None:
    """R-EPH-4: with shareProcessNamespace the pod's namespace, else the target's"""
    options = namespace_options(scene.pod("a", **spec), NODES_USERS, target)
    assert (options.pid, options.network, options.ipc) == (pid, network, ipc)
    assert options.target_id == (target if pid == pb.TARGET else "")


ROOT = ImageUser(uid=0)


def secured(
    scene: type[Scene],
    own: SecurityContext | None = None,
    of_pod: PodSecurityContext | None = None,
    user: ImageUser = ROOT,
) -> pb.LinuxContainerSecurityContext:
    pod = scene.pod("a", security_context=of_pod)
    pod.spec.containers[0].security_context = own
    return container_security(pod, pod.spec.containers[0], user, NODES_USERS, "", "/seccomp")


def test_the_containers_word_comes_before_the_pods(scene: type[Scene]) -> None:
    own = SecurityContext(run_as_user=1, seccomp_profile=SeccompProfile(type="RuntimeDefault"))
    of_pod = PodSecurityContext(
        run_as_user=2,
        run_as_group=3,
        fs_group=4,
        supplemental_groups=[5],
        supplemental_groups_policy="Strict",
        seccomp_profile=SeccompProfile(type="Localhost", localhost_profile="p.json"),
        app_armor_profile=AppArmorProfile(type="Localhost", localhost_profile="tight"),
    )
    made = secured(scene, own, of_pod)
    assert (made.run_as_user.value, made.run_as_group.value) == (1, 3)
    assert list(made.supplemental_groups) == [4, 5]
    assert made.supplemental_groups_policy == pb.Strict
    assert made.seccomp.profile_type == pb.SecurityProfile.RuntimeDefault
    assert made.apparmor.localhost_ref == "tight"
    assert secured(scene, None, of_pod).seccomp.localhost_ref == "/seccomp/p.json"


def test_without_a_word_about_it(scene: type[Scene]) -> None:
    made = secured(scene, user=ImageUser(name="app"))
    assert not made.HasField("run_as_user")
    assert made.run_as_username == "app"
    assert made.seccomp.profile_type == pb.SecurityProfile.Unconfined
    assert not made.HasField("apparmor")
    assert not made.no_new_privs
    assert "/proc/kcore" in made.masked_paths
    assert "/proc/sys" in made.readonly_paths


def test_capabilities_and_flags(scene: type[Scene]) -> None:
    own = SecurityContext(
        capabilities=Capabilities(add=["SYS_PTRACE"], drop=["ALL"]),
        privileged=True,
        read_only_root_filesystem=True,
        allow_privilege_escalation=False,
        proc_mount="Unmasked",
    )
    made = secured(scene, own)
    assert (made.privileged, made.readonly_rootfs, made.no_new_privs) == (True, True, True)
    assert list(made.capabilities.add_capabilities) == ["SYS_PTRACE"]
    assert list(made.capabilities.drop_capabilities) == ["ALL"]
    assert not made.masked_paths and not made.readonly_paths


NON_ROOT = [
    (None, ImageUser(uid=7),      ""),
    (7,    ImageUser(uid=0),      ""),
    (0,    ImageUser(uid=7),      "container's runAsUser breaks non-root policy"),
    (None, ImageUser(uid=0),      "container has runAsNonRoot and image will run as root"),
    (None, ImageUser(),           "container has runAsNonRoot and image will run as root"),
    (None, ImageUser(name="app"), "container has runAsNonRoot and image has non-numeric user (app), "
                                  "cannot verify user is non-root"),
]  # fmt: skip


@pytest.mark.parametrize(("user", "image", "message"), NON_ROOT)
def test_run_as_non_root_is_verified_against_the_image(
    scene: type[Scene], user: int | None, image: ImageUser, message: str
) -> None:
    own = SecurityContext(run_as_non_root=True, run_as_user=user)
    if not message:
        secured(scene, own, user=image)
        return
    with pytest.raises(ConfigError) as refusal:
        secured(scene, own, user=image)
    assert str(refusal.value) == f'{message} (pod: "p_ns(u1)", container: a)'


def test_one_privileged_container_makes_the_sandbox_privileged(scene: type[Scene]) -> None:
    pod = scene.pod("i / a")
    assert not sandbox_security(pod, NODES_USERS).privileged
    pod.spec.init_containers[0].security_context = SecurityContext(privileged=True)
    assert sandbox_security(pod, NODES_USERS).privileged


def test_a_privileged_debug_container_is_told_of_a_privileged_sandbox(scene: type[Scene]) -> None:
    """R-EPH-2: `kubectl debug --profile=sysadmin`."""
    pod = scene.pod("i / a / e")
    assert not sandbox_security(pod, NODES_USERS).privileged
    pod.spec.ephemeral_containers[0].security_context = SecurityContext(privileged=True)
    assert sandbox_security(pod, NODES_USERS).privileged
