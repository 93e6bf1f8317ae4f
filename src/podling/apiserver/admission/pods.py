"""The plugins that complete or refuse pods.

NodeDeclaredFeatureValidator lets a running pod change only in ways that its node declares to support.
RuntimeClass copies overhead and scheduling of the pod's runtime class into the pod. Priority sets the number
of the pod's priority class. ServiceAccount gives each pod an account, and its containers a volume with the
account's token, the cluster's authority and the namespace. DefaultTolerationSeconds keeps a pod for five
minutes on a node that is not ready or unreachable.
"""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from podling.apiserver.admission.chain import Attributes, Objects
from podling.apiserver.request.objects import Find
from podling.apiserver.store.object_meta import NAME_ALPHABET
from podling.model.rules.placement import needed_to_change
from podling.model.rules.status import MIRROR
from podling.model.types.container import Container, VolumeMount
from podling.model.types.core import ServiceAccount
from podling.model.types.core import ServiceAccount as Account
from podling.model.types.node import Node
from podling.model.types.pod import Pod, PodSpec, Toleration
from podling.model.types.priority_class import SYSTEM_CLASSES, PriorityClass
from podling.model.types.references import ObjectFieldSelector
from podling.model.types.runtime_class import RuntimeClass, Scheduling
from podling.model.types.volume import (
    ConfigMapProjection,
    DownwardAPIProjection,
    DownwardAPIVolumeFile,
    KeyToPath,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)


class NodeDeclaredFeatures:
    def __init__(self, find: Find) -> None:
        self._find = find

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        is_pod = (attributes.resource.group, attributes.resource.plural) == ("", "pods")
        if not is_pod or attributes.operation != "UPDATE" or attributes.subresource not in ("", "resize"):
            return
        name = new.spec.node_name
        needed = needed_to_change(new.spec, old.spec) if name else frozenset()
        if not needed:
            return
        node = self._find(Node, "", name)
        if node is None:
            raise attributes.forbidden(f'node "{name}" not found')
        if missing := sorted(needed - set(node.status.declared_features)):
            listed = ", ".join(missing)
            why = f'pod update requires features {listed} which are not available on node "{name}"'
            raise attributes.forbidden(why)


class RuntimeClasses:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if not attributes.is_for("pods", "CREATE"):
            return
        spec: PodSpec = new.spec
        of = self._class(attributes, spec.runtime_class_name)
        _set_overhead(attributes, spec, of)
        if of is not None and of.scheduling is not None:
            _set_scheduling(attributes, spec, of.scheduling)

    def _class(self, attributes: Attributes, name: str | None) -> RuntimeClass | None:
        """The runtime class. Raises StatusError 403 if there is none of that name."""
        if not name:
            return None
        found = self._objects.find(RuntimeClass, "", name)
        if found is None:
            raise attributes.forbidden(f'pod rejected: RuntimeClass "{name}" not found')
        return found


def _set_overhead(attributes: Attributes, spec: PodSpec, of: RuntimeClass | None) -> None:
    if of is None or of.overhead is None:
        if spec.overhead:
            raise attributes.forbidden(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )
        return
    if spec.overhead and spec.overhead != of.overhead.pod_fixed:
        raise attributes.forbidden(
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        )
    spec.overhead = dict(of.overhead.pod_fixed)


def _set_scheduling(attributes: Attributes, spec: PodSpec, scheduling: Scheduling) -> None:
    for key, value in scheduling.node_selector.items():
        own = spec.node_selector.get(key, value)
        if own != value:
            raise attributes.forbidden(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own}"
            )
    spec.node_selector = {**spec.node_selector, **scheduling.node_selector}
    known = set(map(msgspec.structs.astuple, spec.tolerations))
    spec.tolerations = [
        *spec.tolerations,
        *(one for one in scheduling.tolerations if msgspec.structs.astuple(one) not in known),
    ]


DEFAULT_PRIORITY = 0
PREEMPTION_POLICY = "PreemptLowerPriority"


class Priority:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if attributes.is_for("pods", "CREATE"):
            self._set(attributes, new)
        elif attributes.is_for("pods", "UPDATE"):
            _keep(new, old)
        elif attributes.is_about("scheduling.k8s.io", "priorityclasses"):
            if new is not None:
                self._refuse_second_default(attributes, new)
            elif attributes.name in SYSTEM_CLASSES:
                raise attributes.forbidden("this is a system priority class and cannot be deleted")

    def _set(self, attributes: Attributes, pod: Pod) -> None:
        spec = pod.spec
        of = self._class(attributes, spec.priority_class_name)
        priority = of.value if of else DEFAULT_PRIORITY
        policy = (of.preemption_policy if of else None) or PREEMPTION_POLICY
        if spec.priority not in (None, priority):
            raise attributes.forbidden(
                f"the integer value of priority ({spec.priority}) must not be provided in pod spec; "
                f"priority admission controller computed {priority} from the given PriorityClass name"
            )
        if spec.preemption_policy not in (None, policy):
            raise attributes.forbidden(
                f"the string value of PreemptionPolicy ({spec.preemption_policy}) must not be provided in "
                f"pod spec; priority admission controller computed {policy} from the given PriorityClass name"
            )
        spec.priority_class_name = of.metadata.name if of else ""
        spec.priority, spec.preemption_policy = priority, policy

    def _class(self, attributes: Attributes, name: str) -> PriorityClass | None:
        """The named class, or the default one. The two system classes are known even before they are stored.
        Raises StatusError 403 if there is no class of that name."""
        if not name:
            return self._default()
        found = self._objects.find(PriorityClass, "", name)
        if found is not None:
            return found
        if name not in SYSTEM_CLASSES:
            raise attributes.forbidden(f"no PriorityClass with name {name} was found")
        system = PriorityClass(value=SYSTEM_CLASSES[name][0])
        system.metadata.name = name
        return system

    def _default(self) -> PriorityClass | None:
        defaults = [one for one in self._objects.all(PriorityClass) if one.global_default]
        return min(defaults, key=lambda one: one.value, default=None)

    def _refuse_second_default(self, attributes: Attributes, new: PriorityClass) -> None:
        standing = self._default() if new.global_default else None
        if standing is not None and standing.metadata.name != new.metadata.name:
            name = standing.metadata.name
            raise attributes.forbidden(
                f"PriorityClass {name} is already marked as default. Only one default can exist"
            )


def _keep(new: Pod, old: Pod) -> None:
    """Put back what admission set on create, if an update leaves it out."""
    if new.spec.priority is None:
        new.spec.priority = old.spec.priority
    if new.spec.preemption_policy is None:
        new.spec.preemption_policy = old.spec.preemption_policy


PREFIX = "kube-api-access-"
PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_SECONDS = 3607
"""As in Kubernetes, an odd number: it tells tokens of this volume from those that somebody asked for."""
MODE = 0o644


def is_wanted(spec: PodSpec, account: ServiceAccount) -> bool:
    """Whether to mount a token: `automountServiceAccountToken` of the pod, else of its account."""
    for said in (spec.automount_service_account_token, account.automount_service_account_token):
        if said is not None:
            return said
    return True


def mount_token(spec: PodSpec) -> None:
    """Mount the volume in every container that has nothing mounted at that path."""
    without: list[Container] = [
        container
        for container in (*spec.init_containers, *spec.containers)
        if all(mount.mount_path != PLACE for mount in container.volume_mounts)
    ]
    if not without:
        return
    volume = _volume(spec)
    for container in without:
        mount = VolumeMount(name=volume.name, read_only=True, mount_path=PLACE)
        container.volume_mounts = [*container.volume_mounts, mount]


def _volume(spec: PodSpec) -> Volume:
    """The pod's token volume, or a new one."""
    for volume in spec.volumes:
        if volume.name.startswith(PREFIX):
            return volume
    name = PREFIX + "".join(secrets.choice(NAME_ALPHABET) for _ in range(5))
    made = Volume(name=name, projected=ProjectedVolumeSource(sources=_sources(), default_mode=MODE))
    spec.volumes = [*spec.volumes, made]
    return made


def _sources() -> list[VolumeProjection]:
    namespace = ObjectFieldSelector(api_version="v1", field_path="metadata.namespace")
    return [
        VolumeProjection(
            service_account_token=ServiceAccountTokenProjection(
                expiration_seconds=TOKEN_SECONDS, path="token"
            )
        ),
        VolumeProjection(
            config_map=ConfigMapProjection(
                name="kube-root-ca.crt", items=[KeyToPath(key="ca.crt", path="ca.crt")]
            )
        ),
        VolumeProjection(
            downward_api=DownwardAPIProjection(
                items=[DownwardAPIVolumeFile(path="namespace", field_ref=namespace)]
            )
        ),
    ]


DEFAULT = "default"


class ServiceAccountPlugin:
    def __init__(self, find: Find, *, mount_tokens: bool = False) -> None:
        """`mount_tokens`: only if kubelets can set up such a volume."""
        self._find = find
        self._mount_tokens = mount_tokens

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if attributes.is_for("pods", "CREATE") and MIRROR not in new.metadata.annotations:
            self._admit_pod(attributes, new)

    def _admit_pod(self, attributes: Attributes, pod: Pod) -> None:
        spec = pod.spec
        spec.service_account_name = spec.service_account = spec.service_account_name or DEFAULT
        name = spec.service_account_name
        account = self._find(Account, attributes.namespace, name)
        if account is None:
            where = f"{attributes.namespace}/{name}"
            raise attributes.forbidden(
                f'error looking up service account {where}: serviceaccount "{name}" not found'
            )
        if not spec.image_pull_secrets:
            spec.image_pull_secrets = list(account.image_pull_secrets)
        if self._mount_tokens and is_wanted(spec, account):
            mount_token(spec)


NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
SECONDS = 300


class DefaultTolerationSeconds:
    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if not attributes.is_for("pods", "CREATE", "UPDATE"):
            return
        tolerations: list[Toleration] = new.spec.tolerations
        missing = [key for key in NODE_TAINTS if not any(_covers(one, key) for one in tolerations)]
        new.spec.tolerations = [*tolerations, *map(_default, missing)]


def _covers(toleration: Toleration, key: str) -> bool:
    return toleration.key in ("", key) and toleration.effect in ("", "NoExecute")


def _default(key: str) -> Toleration:
    return Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=SECONDS)
