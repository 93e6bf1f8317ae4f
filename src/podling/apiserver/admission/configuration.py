"""What `--admission-control-config-file` says: AdmissionConfiguration of apiserver.config.k8s.io/v1, and the
configuration of each plugin in it or in a file that it names. Pure; refused in Kubernetes' words.

As there, only plugins that are on are looked at, each at the first entry that has its name. Unlike there, no
plugin takes fields that it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec

from podling.apiserver.admission.plugin_options import EventLimit, PluginOptions, TolerationOptions
from podling.apiserver.admission.pod_security import SecurityPolicy
from podling.apiserver.admission.pod_security_plugin import (
    MODES,
    NO_OPTIONS,
    Exemptions,
    PodSecurityOptions,
    SecurityPolicies,
    level_fault,
    minor_of,
)
from podling.apiserver.authz.webhook import FIRST_WAIT
from podling.apiserver.rules import field
from podling.apiserver.rules.configuration_file import (
    ConfigurationError,
    all_faults,
    read_fields,
    read_file,
)
from podling.apiserver.rules.scheduling import validate_tolerations
from podling.model import names
from podling.model.codec import json
from podling.model.codec.fields import Int32, Int64, Object, Part
from podling.model.codec.quoting import quoted
from podling.model.errors import Cause, joined
from podling.model.time import go_duration
from podling.model.types.pod import Toleration

T = TypeVar("T")

ADMISSION = "AdmissionConfiguration"
VERSIONS = ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1")
SECURITY_VERSIONS = tuple(
    f"pod-security.admission.config.k8s.io/{one}" for one in ("v1", "v1beta1", "v1alpha1")
)
EVENTS_VERSION = "eventratelimit.admission.k8s.io/v1alpha1"
TOLERATIONS_VERSION = "podtolerationrestriction.admission.k8s.io/v1alpha1"
POD_SECURITY, EVENT_RATE_LIMIT, IMAGE_POLICY = "PodSecurity", "EventRateLimit", "ImagePolicyWebhook"
NODE_SELECTOR, TOLERATION_RESTRICTION = "PodNodeSelector", "PodTolerationRestriction"
NOT_CONFIGURED = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook", "ResourceQuota")
"""Plugins that Kubernetes lets a file configure, and podling does not."""
BARE = {"imagePolicy": IMAGE_POLICY, "podNodeSelectorPluginConfig": NODE_SELECTOR}
"""Fields by which the configuration of a plugin may take the place of the whole file, and the plugins."""
SERVER = "Server"
LIMIT_TYPES = (SERVER, "Namespace", "User", "SourceAndObject")
CACHE_SIZE = 4096
DISABLED = -1

EMPTY = b"null"
VERSION_FAULT = 'must be "latest" or "v1.x"'
MOST_BACKOFF, MOST_KEPT = 300.0, 1800.0
KEPT_ALLOWED, KEPT_DENIED = 300.0, 30.0
"""Seconds."""
LONGEST_SHOWN = 1e9

Read = Callable[[str], bytes]
"""A file that is named in the first one, by its path, as JSON. Raises ConfigurationError."""


class PluginConfiguration(Part):
    GO_NAME: ClassVar[str] = "AdmissionPluginConfiguration"

    name: str = ""
    path: str = ""
    configuration: Any = None


class AdmissionConfiguration(Object):
    KIND: ClassVar[str] = ADMISSION
    API_VERSION: ClassVar[str] = VERSIONS[0]

    plugins: list[PluginConfiguration] = []


class PodSecurityDefaults(Part):
    enforce: str = ""
    enforce_version: str = msgspec.field(default="", name="enforce-version")
    audit: str = ""
    audit_version: str = msgspec.field(default="", name="audit-version")
    warn: str = ""
    warn_version: str = msgspec.field(default="", name="warn-version")


class PodSecurityExemptions(Part):
    usernames: list[str] = []
    namespaces: list[str] = []
    runtime_classes: list[str] = []


class PodSecurityConfiguration(Object):
    KIND: ClassVar[str] = "PodSecurityConfiguration"
    API_VERSION: ClassVar[str] = SECURITY_VERSIONS[0]

    defaults: PodSecurityDefaults = msgspec.field(default_factory=PodSecurityDefaults)
    exemptions: PodSecurityExemptions = msgspec.field(default_factory=PodSecurityExemptions)


class Limit(Part):
    type: str = ""
    qps: Int32 = 0
    burst: Int32 = 0
    cache_size: Int32 = 0


class EventLimits(Object):
    KIND: ClassVar[str] = "Configuration"
    API_VERSION: ClassVar[str] = EVENTS_VERSION

    limits: list[Limit] | None = None


class Tolerations(Object):
    KIND: ClassVar[str] = "Configuration"
    API_VERSION: ClassVar[str] = TOLERATIONS_VERSION

    default: list[Toleration] = []
    whitelist: list[Toleration] = []


class NodeSelectors(Part):
    pod_node_selector_plugin_config: dict[str, str] = {}


class ImagePolicyConfiguration(Part):
    kube_config_file: str = ""
    allow_TTL: Int64 = 0
    deny_TTL: Int64 = 0
    retry_backoff: Int64 = 0
    default_allow: bool = False


class ImagePolicies(Part):
    GO_NAME: ClassVar[str] = "AdmissionConfig"

    image_policy: ImagePolicyConfiguration = msgspec.field(default_factory=ImagePolicyConfiguration)


class ImagePolicySettings(NamedTuple):
    """As `plugin_options.ImagePolicy`, with who is asked by his kubeconfig."""

    kubeconfig: str
    allowed_ttl: float
    denied_ttl: float
    backoff: float
    fails_open: bool


class ConfiguredPlugins(NamedTuple):
    options: PluginOptions
    image_policy: ImagePolicySettings | None


def read_configuration(data: bytes | None, read: Read, plugins: Collection[str]) -> ConfiguredPlugins:
    """`data`: the file as JSON, None without one; `plugins`: those that are on. Raises ConfigurationError."""
    entries = {} if data is None else entries_of(data)

    def of(name: str, reader: Callable[[bytes | None], T], unset: T) -> T:
        if name not in plugins:
            return unset
        try:
            return reader(_given(entries[name], read) if name in entries else None)
        except ConfigurationError as error:
            raise ConfigurationError(f"couldn't init admission plugin {quoted(name)}: {error}") from error

    for name in NOT_CONFIGURED:
        of(name, _nothing, None)
    options = PluginOptions(
        of(POD_SECURITY, pod_security_of, NO_OPTIONS),
        of(EVENT_RATE_LIMIT, event_limits_of, ()),
        of(TOLERATION_RESTRICTION, tolerations_of, TolerationOptions()),
        of(NODE_SELECTOR, node_selectors_of, {}),
    )
    return ConfiguredPlugins(options, of(IMAGE_POLICY, image_policy_of, None))


def entries_of(data: bytes) -> Mapping[str, PluginConfiguration]:
    """What is said of each plugin. Raises ConfigurationError."""
    said = json.decode_data(data)
    if isinstance(said, dict) and said and said.keys() <= BARE.keys():
        return {BARE[key]: PluginConfiguration(configuration={key: value}) for key, value in said.items()}
    configuration = read_file(data, AdmissionConfiguration, [(ADMISSION, version) for version in VERSIONS])
    return {entry.name: entry for entry in reversed(configuration.plugins)}


def _given(entry: PluginConfiguration, read: Read) -> bytes | None:
    if entry.configuration is not None:
        return json.encode(entry.configuration)
    given = read(entry.path) if entry.path else None
    return None if given == EMPTY else given


def _nothing(data: bytes | None) -> None:
    if data is not None:
        raise ConfigurationError("podling does not configure it")


def pod_security_of(data: bytes | None) -> PodSecurityOptions:
    if data is None:
        return NO_OPTIONS
    kinds = [(PodSecurityConfiguration.KIND, version) for version in SECURITY_VERSIONS]
    said = read_file(data, PodSecurityConfiguration, kinds)
    faults: list[str] = []
    policies = []
    for mode in MODES:
        level = getattr(said.defaults, mode) or "privileged"
        version = getattr(said.defaults, f"{mode}_version") or "latest"
        if why := level_fault(level):
            faults.append(f"{mode}: {why}")
        if (minor := minor_of(version)) is None:
            faults.append(f"{mode}-version: {VERSION_FAULT}")
        else:
            policies.append(SecurityPolicy(level, minor))
    if faults:
        raise ConfigurationError(f"{POD_SECURITY} configuration error: {joined(faults)}")
    if told := all_faults(_exemption_faults(said.exemptions)):
        raise ConfigurationError(f"{POD_SECURITY} invalid: {told}")
    exempt = said.exemptions
    return PodSecurityOptions(
        SecurityPolicies(*policies),
        Exemptions(
            frozenset(exempt.usernames), frozenset(exempt.namespaces), frozenset(exempt.runtime_classes)
        ),
    )


def _exemption_faults(exempt: PodSecurityExemptions) -> Iterator[Cause]:
    rows: tuple[tuple[str, list[str], Callable[[str], Sequence[str]]], ...] = (
        ("namespaces", exempt.namespaces, names.dns1123_label),
        ("runtimeClasses", exempt.runtime_classes, names.dns1123_subdomain),
        ("usernames", exempt.usernames, lambda name: () if name else ("username must not be empty",)),
    )
    for key, listed, faults_of in rows:
        for index, name in enumerate(listed):
            path = f"exemptions.{key}[{index}]"
            if problems := faults_of(name):
                yield field.invalid(path, name, ", ".join(problems))
            elif name in listed[:index]:
                yield field.duplicate(path, name)


def event_limits_of(data: bytes | None) -> Sequence[EventLimit]:
    limits = None
    if data is not None:
        limits = read_file(data, EventLimits, [(EventLimits.KIND, EVENTS_VERSION)]).limits
    if told := all_faults(_limit_faults(limits)):
        raise ConfigurationError(told)
    return [EventLimit(one.type, one.qps, one.burst, one.cache_size or CACHE_SIZE) for one in limits or ()]


def _limit_faults(limits: Sequence[Limit] | None) -> Iterator[Cause]:
    if not limits:
        yield field.invalid("limits", limits, "must not be empty")
    for index, limit in enumerate(limits or ()):
        path = f"limits[{index}]"
        yield from (
            field.one_of(f"{path}.type", limit.type, LIMIT_TYPES)
            if limit.type
            else [field.not_supported(f"{path}.type", "", LIMIT_TYPES)]
        )
        for name in ("burst", "qps"):
            if (value := getattr(limit, name)) <= 0:
                yield field.invalid(f"{path}.{name}", value, "must be positive")
        if limit.type != SERVER and limit.cache_size < 0:
            yield field.invalid(f"{path}.cacheSize", limit.cache_size, "must not be negative")


def tolerations_of(data: bytes | None) -> TolerationOptions:
    if data is None:
        return TolerationOptions()
    said = read_file(data, Tolerations, [(Tolerations.KIND, TOLERATIONS_VERSION)])
    both = ((name, getattr(said, name)) for name in ("default", "whitelist"))
    if told := all_faults(fault for name, them in both for fault in validate_tolerations(them, name)):
        raise ConfigurationError(told)
    return TolerationOptions(said.default, said.whitelist)


def node_selectors_of(data: bytes | None) -> Mapping[str, str]:
    return {} if data is None else read_fields(data, NodeSelectors).pod_node_selector_plugin_config


def image_policy_of(data: bytes | None) -> ImagePolicySettings:
    if data is None:
        raise ConfigurationError("no config specified")
    said = read_fields(data, ImagePolicies).image_policy
    backoff = _seconds(said.retry_backoff, 0.001, MOST_BACKOFF)
    allowed = _seconds(said.allow_TTL, 1.0, MOST_KEPT)
    denied = _seconds(said.deny_TTL, 1.0, MOST_KEPT)
    if not said.kube_config_file:
        raise ConfigurationError("invalid configuration: no configuration has been provided")
    return ImagePolicySettings(
        said.kube_config_file,
        KEPT_ALLOWED if allowed is None else allowed,
        KEPT_DENIED if denied is None else denied,
        FIRST_WAIT if backoff is None else backoff,
        said.default_allow,
    )


def _seconds(count: int, unit: float, most: float) -> float | None:
    """`count` of a unit, both in seconds; None for the default. Raises ConfigurationError."""
    if count in (DISABLED, 0):
        return 0.0 if count else None
    if count < 0 or count * unit > most:
        least = "1s" if unit == 1.0 else "1ns"
        got = ("-" if count < 0 else "") + go_duration(
            timedelta(seconds=min(abs(count) * unit, LONGEST_SHOWN))
        )
        span = go_duration(timedelta(seconds=most))
        raise ConfigurationError(f"valid value is between {least} and {span}, got {got}")
    return count * unit
