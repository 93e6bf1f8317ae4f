"""The plugins that complete or refuse pods.

RuntimeClass copies overhead and scheduling of the pod's runtime class into the pod. Priority sets the number
of the pod's priority class. ServiceAccount gives each pod an account, and its containers a volume with the
account's token, the cluster's authority and the namespace. DefaultTolerationSeconds keeps a pod for five
minutes on a node that is not ready or unreachable. PodTopologyLabels gives a pod the zone and the region of
its node. AlwaysPullImages, where it is on, asks the registry for every image, so that who may not pull one
does not use it because another did.

An eviction takes one of the disruptions that the PodDisruptionBudget of its pod still allows. It is taken by
a write of the budget's status, so two evictions cannot take the same one. The disruption controller gives it
back once the pod is gone, or has not gone in time.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar

from podling.apiserver.admission.plugin import Attributes, Handles, Objects
from podling.apiserver.admission.tolerations import merged
from podling.apiserver.kinds.service_accounts import MOUNTABLE
from podling.apiserver.request.context import Find
from podling.apiserver.request.request import PARSED_AS_TRUE
from podling.apiserver.rules.field import containers_with_paths
from podling.apiserver.store.object_meta import NAME_ALPHABET
from podling.model import names
from podling.model.codec.fields import told_empty
from podling.model.errors import Cause, StatusError, forbidden
from podling.model.rules.references import secrets_of
from podling.model.rules.status import is_condition_true, is_mirror, is_terminal
from podling.model.selectors import from_label_selector
from podling.model.time import Clock, rfc3339
from podling.model.types.container import EphemeralContainerCommon, VolumeMount
from podling.model.types.core import ServiceAccount
from podling.model.types.node import Node
from podling.model.types.node_k8s_io import RuntimeClass
from podling.model.types.pod import Binding, Pod, PodSpec, Toleration
from podling.model.types.policy import PodDisruptionBudget
from podling.model.types.references import ObjectFieldSelector
from podling.model.types.scheduling import SYSTEM_CLASSES, PriorityClass
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

DEFAULT_PRIORITY = 0
PREEMPTION_POLICY = "PreemptLowerPriority"

DEFAULT_ACCOUNT = "default"
TOKEN_VOLUME = "kube-api-access-"
"""The start of the volume's name."""
PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_SECONDS = 3607
"""As in Kubernetes, an odd number: it tells tokens of this volume from those that somebody asked for."""
TOKEN_MODE = 0o644

NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
TOLERATION_SECONDS = 300
TOPOLOGY_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
ALWAYS = "Always"

CANNOT_EVICT = "Cannot evict pod as it would violate the pod's disruption budget."
STALE_SECONDS = 10
"""After which to try again when the budget's status is older than the budget."""
MOST_UNCONFIRMED = 2000


class RuntimeClassPlugin:
    handles: ClassVar[Handles] = {"pods": ("CREATE",)}

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        spec: PodSpec = new.spec
        name = spec.runtime_class_name
        of = self._objects.find(RuntimeClass, "", name) if name else None
        if name and of is None:
            raise attributes.forbidden(f'pod rejected: RuntimeClass "{name}" not found')
        if of is not None and of.overhead is not None:
            if spec.overhead and spec.overhead != of.overhead.pod_fixed:
                raise attributes.forbidden(
                    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
                )
            spec.overhead = dict(of.overhead.pod_fixed)
        if of is None or of.scheduling is None:
            return
        for key, value in of.scheduling.node_selector.items():
            own = spec.node_selector.get(key, value)
            if own != value:
                raise attributes.forbidden(
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {own}"
                )
        spec.node_selector = {**spec.node_selector, **of.scheduling.node_selector}
        spec.tolerations = merged((*spec.tolerations, *of.scheduling.tolerations))


class RuntimeClassOverhead:
    """Refuses an overhead that no runtime class gave, once the pod is known to be valid."""

    handles: ClassVar[Handles] = {"pods": ("CREATE",)}

    def __init__(self, find: Find) -> None:
        self._find = find

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        name = new.spec.runtime_class_name
        of = self._find(RuntimeClass, "", name) if name else None
        has_overhead = new.spec.overhead or "overhead" in told_empty(new.spec)
        if has_overhead and (of is None or of.overhead is None):
            raise attributes.forbidden(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )


class Priority:
    handles: ClassVar[Handles] = {
        "pods": ("CREATE", "UPDATE"),
        "priorityclasses.scheduling.k8s.io": ("CREATE", "UPDATE", "DELETE"),
    }

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._changes = -1
        self._standing: PriorityClass | None = None
        """The default as of then."""

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        if attributes.target != "pods":
            if new is None and attributes.name in SYSTEM_CLASSES:
                raise attributes.forbidden("this is a system priority class and cannot be deleted")
            standing = self._default() if new is not None and new.global_default else None
            name = standing.metadata.name if standing is not None else None
            if name and (old is None or name != new.metadata.name):
                raise attributes.forbidden(
                    f"PriorityClass {name} is already marked as default. Only one default can exist"
                )
        elif attributes.operation == "CREATE":
            self._set(attributes, new)
        else:
            # What admission set on create is put back if the update leaves it out.
            if new.spec.priority is None:
                new.spec.priority = old.spec.priority
            if new.spec.preemption_policy is None:
                new.spec.preemption_policy = old.spec.preemption_policy

    def _set(self, attributes: Attributes, pod: Pod) -> None:
        spec = pod.spec
        name = spec.priority_class_name
        of = self._objects.find(PriorityClass, "", name) if name else self._default()
        if name and of is None:
            if name not in SYSTEM_CLASSES:
                raise attributes.forbidden(f"no PriorityClass with name {name} was found")
            # The two system classes are known even before they are stored.
            of = PriorityClass(value=SYSTEM_CLASSES[name][0])
            of.metadata.name = name
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

    def _default(self) -> PriorityClass | None:
        changes = self._objects.changes(PriorityClass)
        if changes != self._changes:
            defaults = [one for one in self._objects.all(PriorityClass) if one.global_default]
            self._standing = min(defaults, key=lambda one: one.value, default=None)
            self._changes = changes
        return self._standing


class ServiceAccountPlugin:
    handles: ClassVar[Handles] = {"pods": ("CREATE",)}

    def __init__(self, find: Find, *, mount_tokens: bool = False) -> None:
        """`mount_tokens`: only if kubelets can set up such a volume."""
        self._find = find
        self._mount_tokens = mount_tokens

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        if is_mirror(new):
            if why := _fault_of_mirror(new):
                raise attributes.forbidden(why)
            return
        spec: PodSpec = new.spec
        name = spec.service_account_name or DEFAULT_ACCOUNT
        spec.service_account_name = spec.service_account = name
        account = account_of(attributes, new, self._find)
        if not spec.image_pull_secrets:
            spec.image_pull_secrets = list(account.image_pull_secrets)
        asked = spec.automount_service_account_token
        if asked is None:
            asked = account.automount_service_account_token
        if self._mount_tokens and asked is not False:
            mount_token(spec)


class ServiceAccountCheck:
    """What is left of ServiceAccount once webhooks have changed the pod."""

    handles: ClassVar[Handles] = {"pods": ("CREATE",), "pods/ephemeralcontainers": ("UPDATE",)}

    def __init__(self, find: Find) -> None:
        self._find = find

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        is_new = attributes.operation == "CREATE"
        if is_new and is_mirror(new):
            if why := _fault_of_mirror(new):
                raise attributes.forbidden(why)
            return
        account = account_of(attributes, new, self._find)
        if account.metadata.annotations.get(MOUNTABLE) not in PARSED_AS_TRUE:
            return
        if why := _fault_of_secrets(new.spec, account, is_new=is_new):
            if is_new:
                raise attributes.forbidden(why)
            # Kubernetes says this one as it is.
            raise StatusError(403, "Forbidden", why, name=attributes.name, kind=attributes.resource.plural)


def account_of(attributes: Attributes, pod: Pod, find: Find) -> ServiceAccount:
    """Raises StatusError 403."""
    name = pod.spec.service_account_name
    if not name:
        raise attributes.forbidden(
            f"no service account specified for pod {attributes.namespace}/{pod.metadata.name}"
        )
    account = find(ServiceAccount, attributes.namespace, name)
    if account is not None:
        return account
    faults = ", ".join(names.path_segment(name))
    why = f'invalid resource name "{name}": [{faults}]' if faults else f'serviceaccount "{name}" not found'
    raise attributes.forbidden(f"error looking up service account {attributes.namespace}/{name}: {why}")


def _fault_of_secrets(spec: PodSpec, account: ServiceAccount, *, is_new: bool) -> str:
    """Which secret is none of those that the account names; empty if there is none. Of a pod that was there
    before only its ephemeral containers are new."""
    unknown = f"is not allowed because service account {account.metadata.name} does not reference that"
    mountable = {one.name for one in account.secrets}
    for where, secret in _secrets_used(spec) if is_new else _of_containers(spec.ephemeral_containers):
        if secret not in mountable:
            return f'{where} secret.secretName="{secret}" {unknown} secret'
    pulled = {one.name for one in account.image_pull_secrets}
    for index, reference in enumerate(spec.image_pull_secrets if is_new else ()):
        if reference.name not in pulled:
            return f'imagePullSecrets[{index}].name="{reference.name}" {unknown} imagePullSecret'
    return ""


def _secrets_used(spec: PodSpec) -> Iterator[tuple[str, str]]:
    """By what, and which."""
    for volume in spec.volumes:
        if volume.secret is not None:
            yield "volume with", volume.secret.secret_name
    yield from _of_containers(spec.init_containers, "init container")
    yield from _of_containers(spec.containers, "container")


def _of_containers(
    containers: Sequence[EphemeralContainerCommon], kind: str = "ephemeral container"
) -> Iterator[tuple[str, str]]:
    for container in containers:
        for variable in container.env:
            if variable.value_from is not None and variable.value_from.secret_key_ref is not None:
                using = f"{kind} {container.name} with envVar {variable.name} referencing"
                yield using, variable.value_from.secret_key_ref.name
        for source in container.env_from:
            if source.secret_ref is not None:
                yield f"{kind} {container.name} with envFrom referencing", source.secret_ref.name


def _fault_of_mirror(pod: Pod) -> str:
    """A mirror pod runs already, with what its node had: it may ask for nothing of the API."""
    if pod.spec.service_account_name:
        return "a mirror pod may not reference service accounts"
    if any(secrets_of(pod)):
        return "a mirror pod may not reference secrets"
    volumes = [volume.projected for volume in pod.spec.volumes if volume.projected is not None]
    if any(source.service_account_token is not None for volume in volumes for source in volume.sources):
        return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""


def mount_token(spec: PodSpec) -> None:
    """Mount the token volume, the pod's own or a new one, in every container that has nothing mounted at its
    path."""
    without = [
        container
        for container in (*spec.init_containers, *spec.containers)
        if all(mount.mount_path != PLACE for mount in container.volume_mounts)
    ]
    if not without:
        return
    volume = next((one for one in spec.volumes if one.name.startswith(TOKEN_VOLUME)), None)
    if volume is None:
        name = TOKEN_VOLUME + "".join(secrets.choice(NAME_ALPHABET) for _ in range(5))
        projected = ProjectedVolumeSource(sources=_sources(), default_mode=TOKEN_MODE)
        volume = Volume(name=name, projected=projected)
        spec.volumes = [*spec.volumes, volume]
    for container in without:
        mount = VolumeMount(name=volume.name, read_only=True, mount_path=PLACE)
        container.volume_mounts = [*container.volume_mounts, mount]


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


class DefaultTolerationSeconds:
    handles: ClassVar[Handles] = {"pods": ("CREATE", "UPDATE")}

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        tolerations: list[Toleration] = new.spec.tolerations
        covered = {one.key for one in tolerations if one.effect in ("", "NoExecute")}
        missing = () if "" in covered else (key for key in NODE_TAINTS if key not in covered)
        new.spec.tolerations = [
            *tolerations,
            *(
                Toleration(
                    key=key,
                    operator="Exists",
                    effect="NoExecute",
                    toleration_seconds=TOLERATION_SECONDS,
                )
                for key in missing
            ),
        ]


class PodTopologyLabels:
    handles: ClassVar[Handles] = {"pods": ("CREATE",), "pods/binding": ("CREATE",)}

    def __init__(self, find: Find) -> None:
        self._find = find

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if isinstance(new, Binding):
            name = new.target.name if new.target.kind == "Node" else ""
        else:
            name = new.spec.node_name
        node = self._find(Node, "", name) if name else None
        if node is not None:
            labels = node.metadata.labels
            its = {key: labels[key] for key in TOPOLOGY_LABELS if key in labels}
            new.metadata.labels = {**new.metadata.labels, **its}


class AlwaysPullImages:
    handles: ClassVar[Handles] = {"pods": ("CREATE", "UPDATE")}

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if old is not None and _images(new.spec) <= _images(old.spec):
            return
        for container, _ in containers_with_paths(new.spec, "spec"):
            container.image_pull_policy = ALWAYS
        for volume in new.spec.volumes:
            if volume.image is not None:
                volume.image.pull_policy = ALWAYS


def _images(spec: PodSpec) -> set[str]:
    return {container.image for container, _ in containers_with_paths(spec, "spec")}


class DisruptionBudgets:
    handles: ClassVar[Handles] = {"pods/eviction": ("DELETE",)}

    def __init__(self, objects: Objects, clock: Clock) -> None:
        self._objects = objects
        self._clock = clock

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 429 if the budget allows no disruption, 500 if two budgets select the pod, as in
        Kubernetes."""
        pod: Pod = old
        # A pod that has not started, has ended or is being deleted is evicted without asking a budget.
        if pod.metadata.deletion_timestamp or is_terminal(pod) or pod.status.phase == "Pending":
            return
        found = [
            budget
            for budget in self._objects.all(PodDisruptionBudget, pod.metadata.namespace)
            if from_label_selector(budget.spec.selector).matches(pod.metadata.labels)
        ]
        if len(found) > 1:
            raise StatusError(
                500,
                "InternalError",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
                "support.",
            )
        if not found:
            return
        budget, status = found[0], found[0].status
        # A pod that is not ready may go without taking a disruption, by `unhealthyPodEvictionPolicy`.
        if not is_condition_true(pod.status.conditions, "Ready") and (
            budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
            or status.current_healthy >= status.desired_healthy > 0
        ):
            return
        now = self._clock.now()
        await self._objects.change(
            PodDisruptionBudget,
            budget.metadata.namespace,
            budget.metadata.name,
            lambda standing: take(standing, pod.metadata.name, now),
            dry_run=attributes.dry_run,
        )


def take(budget: PodDisruptionBudget, pod: str, now: datetime) -> None:
    """Take one disruption for `pod`. Raises StatusError 429 when there is none to take."""
    name, status = budget.metadata.name, budget.status
    if status.observed_generation < budget.metadata.generation:
        raise _refused(f"The disruption budget {name} is still being processed by the server.", STALE_SECONDS)
    if len(status.disrupted_pods) > MOST_UNCONFIRMED:
        raise forbidden(
            "poddisruptionbudgets",
            name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            "policy",
        )
    if status.disruptions_allowed <= 0:
        raise _refused(
            f"The disruption budget {name} needs {status.desired_healthy} healthy pods and has "
            f"{status.current_healthy} currently"
        )
    status.disruptions_allowed -= 1
    status.disrupted_pods = {**status.disrupted_pods, pod: rfc3339(now)}


def _refused(why: str, seconds: int = 0) -> StatusError:
    cause = Cause("DisruptionBudget", why)
    return StatusError(429, "TooManyRequests", CANNOT_EVICT, causes=(cause,), retry_after_seconds=seconds)
