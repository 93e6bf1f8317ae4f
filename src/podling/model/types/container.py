"""core/v1: Container with environment, mounts, probes, lifecycle hooks, resources and security context."""

from typing import Annotated

from podling.model.codec.fields import SET, Int32, Int64, IntOrString, Part, Telling, always, by, keyed, null
from podling.model.quantity import Quantity
from podling.model.types.references import (
    ConfigMapKeySelector,
    ObjectFieldSelector,
    ResourceFieldSelector,
    SecretKeySelector,
)

ResourceList = dict[str, Quantity]


class ContainerPort(Part):
    name: str = ""
    host_port: Int32 = 0
    container_port: Int32 = always(int)
    protocol: str = ""
    host_ip: str = ""


class ConfigMapEnvSource(Part):
    name: str = ""
    optional: bool | None = None


class SecretEnvSource(Part):
    name: str = ""
    optional: bool | None = None


class EnvFromSource(Part):
    prefix: str = ""
    config_map_ref: ConfigMapEnvSource | None = None
    secret_ref: SecretEnvSource | None = None


class FileKeySelector(Part):
    ATOMIC = True

    volume_name: str = always(str)
    path: str = always(str)
    key: str = always(str)
    optional: bool | None = None


class EnvVarSource(Part):
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: ConfigMapKeySelector | None = None
    secret_key_ref: SecretKeySelector | None = None
    file_key_ref: FileKeySelector | None = None


class EnvVar(Part):
    name: str = always(str)
    value: str = ""
    value_from: EnvVarSource | None = None


class ResourceClaim(Part):
    """The name of an entry in the pod's `resourceClaims`."""

    name: str = always(str)
    request: str = ""


class ResourceRequirements(Part):
    limits: ResourceList = {}
    requests: ResourceList = {}
    claims: Annotated[list[ResourceClaim], keyed("name")] = []


class ContainerResizePolicy(Part):
    resource_name: str = always(str)
    restart_policy: str = always(str)


class ContainerRestartRuleOnExitCodes(Part):
    operator: str = always(str)
    values: Annotated[list[Int32], SET] = []


class ContainerRestartRule(Part):
    action: str = always(str)
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class VolumeMount(Part):
    name: str = always(str)
    read_only: bool = False
    recursive_read_only: str | None = None
    mount_path: str = always(str)
    sub_path: str = ""
    mount_propagation: str | None = None
    sub_path_expr: str = ""


class VolumeDevice(Part):
    name: str = always(str)
    device_path: str = always(str)


class ExecAction(Part):
    command: list[str] = []


class HTTPHeader(Part):
    name: str = always(str)
    value: str = always(str)


class HTTPGetAction(Part):
    path: str = ""
    port: IntOrString = always(int)
    host: str = ""
    scheme: str = ""
    http_headers: list[HTTPHeader] = []


class TCPSocketAction(Part):
    port: IntOrString = always(int)
    host: str = ""


class GRPCAction(Part):
    port: Int32 = always(int)
    service: str | None = null()


class SleepAction(Part):
    seconds: Int64 = always(int)


class Probe(Part):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    initial_delay_seconds: Int32 = 0
    timeout_seconds: Int32 = 0
    period_seconds: Int32 = 0
    success_threshold: Int32 = 0
    failure_threshold: Int32 = 0
    termination_grace_period_seconds: Int64 | None = None


class LifecycleHandler(Part):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Part):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


class Capabilities(Part):
    add: list[str] = []
    drop: list[str] = []


class SELinuxOptions(Part):
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class WindowsSecurityContextOptions(Part):
    gmsa_credential_spec_name: str | None = None
    gmsa_credential_spec: str | None = None
    run_as_user_name: str | None = None
    host_process: bool | None = None


class SeccompProfile(Part):
    type: str = always(str)
    localhost_profile: str | None = None


class AppArmorProfile(Part):
    type: str = always(str)
    localhost_profile: str | None = None


class SecurityContext(Part):
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    proc_mount: str | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None


class EphemeralContainerCommon(Part):
    """The fields a container and an ephemeral container share."""

    name: str = always(str)
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    working_dir: str = ""
    ports: Annotated[list[ContainerPort], by("containerPort", keys=("containerPort", "protocol"))] = []
    env_from: list[EnvFromSource] = []
    env: Annotated[list[EnvVar], by("name")] = []
    resources: ResourceRequirements = always(ResourceRequirements)
    resize_policy: list[ContainerResizePolicy] = []
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] = []
    volume_mounts: Annotated[list[VolumeMount], by("mountPath")] = []
    volume_devices: Annotated[list[VolumeDevice], by("devicePath")] = []
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    image_pull_policy: str = ""
    security_context: SecurityContext | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class Container(EphemeralContainerCommon):
    """A container of `spec.containers` or, with its own rules, of `spec.initContainers`."""


class EphemeralContainer(EphemeralContainerCommon, Telling):
    TELLS = (
        "ports",
        "resources.limits",
        "resources.requests",
        "resources.claims",
        "resizePolicy",
        "restartPolicyRules",
    )

    target_container_name: str = ""
