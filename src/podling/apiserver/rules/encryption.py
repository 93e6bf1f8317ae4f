"""EncryptionConfiguration (apiserver.config.k8s.io/v1): which resources are sealed at rest, how and with
which keys; and what is wrong with one, in Kubernetes' words. Keys are never shown.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, ClassVar

import msgspec

from podling.apiserver.rules import field
from podling.apiserver.rules.configuration_file import ConfigurationError, all_faults, read_file
from podling.model.codec.fields import Object, Part
from podling.model.codec.quoting import quoted
from podling.model.errors import Cause
from podling.model.time import go_duration, parse_duration

KINDS = (
    ("EncryptionConfiguration", "apiserver.config.k8s.io/v1"),
    # The form of before Kubernetes 1.13, which it still takes.
    ("EncryptionConfig", "v1"),
)
ANY = ("*", "*")
KEY_LENGTHS = {"aesgcm": (16, 24, 32), "aescbc": (16, 24, 32), "secretbox": (32,)}
REDACTED = "REDACTED"
PROVIDERS = {
    "aesgcm": "AESGCM",
    "aescbc": "AESCBC",
    "secretbox": "Secretbox",
    "identity": "Identity",
    "kms": "KMS",
}
"""The fields of a provider, by their names in Go."""
_ShownKMS = msgspec.defstruct("_ShownKMS", ["APIVersion", "Name", "CacheSize", "Endpoint", "Timeout"])
_Shown = msgspec.defstruct("_Shown", list(PROVIDERS.values()))
NO_REST = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")
KMS_TIMEOUT = 3.0
"""Seconds, where none is given."""
KMS_V1 = (
    "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  "
    "Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."
)

GroupResource = tuple[str, str]
"""Resource and group; each may be `*`."""


class Key(Part):
    name: str = ""
    secret: str = ""


class KeysConfiguration(Part):
    keys: list[Key] = []


class IdentityConfiguration(Part):
    pass


class KMSConfiguration(Part):
    api_version: str = ""
    name: str = ""
    cachesize: int | None = None
    endpoint: str = ""
    timeout: str | None = None


class ProviderConfiguration(Part):
    aesgcm: KeysConfiguration | None = None
    aescbc: KeysConfiguration | None = None
    secretbox: KeysConfiguration | None = None
    identity: IdentityConfiguration | None = None
    kms: KMSConfiguration | None = None


class ResourceConfiguration(Part):
    resources: list[str] = []
    providers: list[ProviderConfiguration] = []


class EncryptionConfiguration(Object):
    KIND: ClassVar[str] = KINDS[0][0]
    API_VERSION: ClassVar[str] = KINDS[0][1]

    resources: list[ResourceConfiguration] = []


def read_configuration(data: bytes) -> EncryptionConfiguration:
    """A configuration from JSON. Raises ConfigurationError."""
    configuration = read_file(data, EncryptionConfiguration, KINDS)
    for kms in _all_kms(configuration):
        if kms.timeout is not None:
            try:
                seconds_of(kms)
            except ValueError as error:
                raise ConfigurationError(f"time: invalid duration {quoted(kms.timeout)}") from error
    if told := all_faults(validate(configuration)):
        raise ConfigurationError(told)
    return configuration


def providers_of(configuration: EncryptionConfiguration) -> dict[GroupResource, list[ProviderConfiguration]]:
    """The providers of each resource that is named, in their order. Raises ConfigurationError when
    one is named after a wildcard that has it, and for what is had no more."""
    if any(kms.api_version in ("", "v1") for kms in _all_kms(configuration)):
        raise ConfigurationError(KMS_V1)
    found: dict[GroupResource, list[ProviderConfiguration]] = {}
    for entry in configuration.resources:
        for name in entry.resources:
            named = group_resource(name)
            for wider in (("*", named[1]), ANY):
                if wider in found:
                    why = f"is masked by earlier rule {quoted('.'.join(wider))}"
                    raise ConfigurationError(f"resource {quoted(name)} {why}")
            found.setdefault(named, []).extend(entry.providers)
    return found


def group_resource(name: str) -> GroupResource:
    resource, _, group = name.partition(".")
    return resource, group


def validate(configuration: EncryptionConfiguration) -> Iterator[Cause]:
    known: set[str] = set()
    if not configuration.resources:
        yield field.required("resources", "at least one resources is required")
    for index, entry in enumerate(configuration.resources):
        path = f"resources[{index}]"
        if not entry.resources:
            yield field.required(f"{path}.resources", f"at least one {path}.resources is required")
        yield from _overlaps(entry.resources, f"{path}.resources")
        for place, name in enumerate(entry.resources):
            if why := _name_fault(name):
                yield field.invalid(f"{path}.resources[{place}]", name, why)
        if not entry.providers:
            yield field.required(f"{path}.providers", f"at least one {path}.providers is required")
        for place, provider in enumerate(entry.providers):
            yield from _provider_faults(provider, f"{path}.providers[{place}]", known)


def _overlaps(names: list[str], path: str) -> Iterator[Cause]:
    named = [group_resource(name) for name in names]
    distinct = set(named)
    if len(distinct) < len(named):
        yield field.invalid(path, names, "the same resource cannot be specified multiple times")
    of_group = Counter(group for _, group in named)
    if (ANY in distinct and len(named) > 1) or any(
        resource == "*" and of_group[group] > 1 for resource, group in distinct
    ):
        why = (
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is not "
            "allowed as they will be masked"
        )
        yield field.invalid(path, names, why)


def _name_fault(name: str) -> str:
    resource, group = group_resource(name)
    if name.lower() != name:
        return "resource name should not contain capital letters"
    if name == "*":
        return "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
    if name in NO_REST:
        return "resources which do not have REST API/s cannot be encrypted"
    if group == "events.k8s.io":
        return (
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. "
            "Use 'events' instead in the config file"
        )
    if group == "extensions":
        return "'extensions' group has been removed and cannot be used for encryption"
    if group == "*" and resource != "*":
        return "encrypting the same resource across groups is not supported"
    return ""


def _provider_faults(provider: ProviderConfiguration, path: str, known: set[str]) -> Iterator[Cause]:
    """`known`: the names of the plugins before it."""
    given = [name for name in PROVIDERS if getattr(provider, name) is not None]
    if not given:
        why = "provider does not contain any of the expected providers: " + ", ".join(
            ("KMS", "AESGCM", "AESCBC", "Secretbox", "Identity")
        )
        yield field.invalid(path, _shown(provider), why)
    elif len(given) > 1:
        why = (
            "more than one provider specified in a single element, should split into different list elements"
        )
        yield field.invalid(path, _shown(provider), why)
    elif provider.kms is not None:
        yield from _kms_faults(provider.kms, f"{path}.kms", known)
        known.add(provider.kms.name)
    elif given[0] != "identity":
        keys: list[Key] = getattr(provider, given[0]).keys
        yield from _key_faults(keys, f"{path}.{given[0]}.keys", KEY_LENGTHS[given[0]])


def _kms_faults(kms: KMSConfiguration, path: str, known: set[str]) -> Iterator[Cause]:
    if not kms.name:
        yield field.required(f"{path}.name", "name is a mandatory field for a provider")
    elif ":" in kms.name:
        why = f"invalid KMS provider name {kms.name}, must not contain ':'"
        yield field.invalid(f"{path}.name", kms.name, why)
    elif kms.name in known:
        yield field.invalid(
            f"{path}.name", kms.name, f"duplicate KMS provider name {kms.name}, names must be unique"
        )
    if kms.timeout is not None and seconds_of(kms) <= 0:
        yield field.invalid(f"{path}.timeout", kms.timeout, "timeout should be a positive value")
    if why := _endpoint_fault(kms.endpoint):
        yield field.invalid(f"{path}.endpoint", kms.endpoint, why)
    is_first = kms.api_version in ("", "v1")
    if kms.cachesize is not None and not (is_first and kms.cachesize):
        why = "cachesize should be a positive value, or negative to disable"
        yield field.invalid(
            f"{path}.cachesize", kms.cachesize, why if is_first else "cachesize is not supported in v2"
        )
    if not is_first and kms.api_version != "v2":
        why = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported"
        yield field.invalid(f"{path}.apiVersion", kms.api_version, why)


def _endpoint_fault(endpoint: str) -> str:
    if not endpoint:
        return "endpoint is a mandatory field for a kms"
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in endpoint):
        why = "net/url: invalid control character in URL"
        return f"invalid endpoint for kms provider, error: parse {quoted(endpoint)}: {why}"
    scheme, colon, _ = endpoint.partition(":")
    scheme = scheme if colon and "/" not in scheme else ""
    if scheme != "unix":
        return f"unsupported scheme {quoted(scheme)} for KMS provider, only unix is supported"
    return ""


def seconds_of(kms: KMSConfiguration) -> float:
    """How long a call may take. Raises ValueError."""
    if kms.timeout is None:
        return KMS_TIMEOUT
    sign = -1 if kms.timeout.startswith("-") else 1
    return sign * parse_duration(kms.timeout.lstrip("+-")).total_seconds()


def _all_kms(configuration: EncryptionConfiguration) -> Iterator[KMSConfiguration]:
    for entry in configuration.resources:
        for provider in entry.providers:
            if provider.kms is not None:
                yield provider.kms


def _key_faults(keys: Sequence[Key], path: str, known_lengths: Sequence[int]) -> Iterator[Cause]:
    if not keys:
        yield field.required(path, "at least one keys is required")
    for index, key in enumerate(keys):
        at = f"{path}[{index}]"
        if not key.name:
            yield field.required(f"{at}.name", "name is a mandatory field for a key")
        if not key.secret:
            yield field.required(f"{at}.secret", "secret is a mandatory field for a key")
            continue
        try:
            length = len(secret_of(key))
        except ValueError:
            yield field.invalid(f"{at}.secret", REDACTED, "secrets must be base64 encoded")
            continue
        if length not in known_lengths:
            lengths = " ".join(map(str, known_lengths))
            why = f"secret is not of the expected length, got {length}, expected one of [{lengths}]"
            yield field.invalid(f"{at}.secret", REDACTED, why)


def secret_of(key: Key) -> bytes:
    """Raises ValueError if it is not in base64."""
    return base64.b64decode(key.secret.replace("\r", "").replace("\n", ""), validate=True)


def _shown(provider: ProviderConfiguration) -> msgspec.Struct:
    """As Go shows it, without its keys."""
    shown: list[Any] = []
    for name in PROVIDERS:
        given = getattr(provider, name)
        if isinstance(given, KMSConfiguration):
            timeout = go_duration(timedelta(seconds=seconds_of(given)))
            version = given.api_version or "v1"
            shown.append(_ShownKMS(version, given.name, given.cachesize, given.endpoint, timeout))
        elif isinstance(given, KeysConfiguration):
            keys = [{"Name": key.name, "Secret": REDACTED} for key in given.keys]
            shown.append({"Keys": keys or None})
        else:
            shown.append(None if given is None else msgspec.to_builtins(given))
    return _Shown(*shown)
