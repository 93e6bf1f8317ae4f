"""What an EncryptionConfiguration may say. The messages are kube-apiserver's, of v1.36.2, where it is not
said otherwise."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from podling.apiserver.rules.configuration_file import ConfigurationError
from podling.apiserver.rules.encryption import (
    group_resource,
    providers_of,
    read_configuration,
)
from podling.model.codec import json

KEY = {"name": "k", "secret": base64.b64encode(bytes(16)).decode()}
GCM = {"aesgcm": {"keys": [KEY]}}
NONE = '{"AESGCM":null,"AESCBC":null,"Secretbox":null,"Identity":null,"KMS":null}'
AT = "resources[0].providers[0]"
OVERLAP = (
    "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they "
    "will be masked"
)
TWICE = "the same resource cannot be specified multiple times"
NO_PROVIDER = (
    "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"
)
TOO_MANY = "more than one provider specified in a single element, should split into different list elements"


def entry(*resources: str, providers: list[Any] | None = None) -> dict[str, Any]:
    return {"resources": list(resources), "providers": [GCM] if providers is None else providers}


def configuration(*entries: dict[str, Any], **said: Any) -> bytes:
    head = {"kind": "EncryptionConfiguration", "apiVersion": "apiserver.config.k8s.io/v1"}
    return json.encode({**head, "resources": list(entries), **said})


def secrets(*providers: Any) -> bytes:
    return configuration(entry("secrets", providers=list(providers)))


def keys(*given: dict[str, str]) -> bytes:
    return secrets({"aesgcm": {"keys": list(given)}})


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (configuration(), "resources: Required value: at least one resources is required"),
        (
            configuration(entry()),
            "resources[0].resources: Required value: at least one resources[0].resources is required",
        ),
        (
            secrets(),
            "resources[0].providers: Required value: at least one resources[0].providers is required",
        ),
        (secrets({}), f"{AT}: Invalid value: {NONE}: {NO_PROVIDER}"),
        (secrets({"identity": None}), f"{AT}: Invalid value: {NONE}: {NO_PROVIDER}"),
        (keys(), f"{AT}.aesgcm.keys: Required value: at least one keys is required"),
        (
            keys({"secret": KEY["secret"]}),
            f"{AT}.aesgcm.keys[0].name: Required value: name is a mandatory field for a key",
        ),
        (
            keys(KEY, {"name": "a"}),
            f"{AT}.aesgcm.keys[1].secret: Required value: secret is a mandatory field for a key",
        ),
        (
            keys({"name": "a", "secret": "%%"}),
            f'{AT}.aesgcm.keys[0].secret: Invalid value: "REDACTED": secrets must be base64 encoded',
        ),
        (
            keys({"name": "a", "secret": "AAAAAAAAAA=="}),
            f'{AT}.aesgcm.keys[0].secret: Invalid value: "REDACTED": secret is not of the expected length, '
            "got 7, expected one of [16 24 32]",
        ),
        (
            configuration(entry("Secrets")),
            'resources[0].resources[0]: Invalid value: "Secrets": resource name should not contain capital '
            "letters",
        ),
        (
            configuration(entry("*")),
            "resources[0].resources[0]: Invalid value: \"*\": use '*.' to encrypt all the resources from "
            "core API group or *.* to encrypt all resources",
        ),
        (
            configuration(entry("secrets", "secrets")),
            f'resources[0].resources: Invalid value: ["secrets","secrets"]: {TWICE}',
        ),
        (
            configuration(entry("secrets", "*.")),
            f'resources[0].resources: Invalid value: ["secrets","*."]: {OVERLAP}',
        ),
        (
            configuration(entry("secrets", "*.*")),
            f'resources[0].resources: Invalid value: ["secrets","*.*"]: {OVERLAP}',
        ),
        (
            configuration(entry("*.", "*.", "secrets")),
            f'[resources[0].resources: Invalid value: ["*.","*.","secrets"]: {TWICE}, '
            f'resources[0].resources: Invalid value: ["*.","*.","secrets"]: {OVERLAP}]',
        ),
        (
            configuration(entry("events.events.k8s.io")),
            "resources[0].resources[0]: Invalid value: \"events.events.k8s.io\": '*.events.k8s.io' objects "
            "are stored using the 'events' API group in etcd. Use 'events' instead in the config file",
        ),
        (
            configuration(entry("x.extensions")),
            "resources[0].resources[0]: Invalid value: \"x.extensions\": 'extensions' group has been removed "
            "and cannot be used for encryption",
        ),
        (
            configuration(entry("secrets.*")),
            'resources[0].resources[0]: Invalid value: "secrets.*": encrypting the same resource across '
            "groups is not supported",
        ),
        (
            configuration(entry("apiserveripinfo")),
            'resources[0].resources[0]: Invalid value: "apiserveripinfo": resources which do not have REST '
            "API/s cannot be encrypted",
        ),
        (
            configuration(entry("Secrets", "*", providers=[{}, {"aesgcm": {"keys": []}}])),
            f'[resources[0].resources: Invalid value: ["Secrets","*"]: {OVERLAP}, '
            'resources[0].resources[0]: Invalid value: "Secrets": resource name should not contain capital '
            "letters, resources[0].resources[1]: Invalid value: \"*\": use '*.' to encrypt all the resources "
            f"from core API group or *.* to encrypt all resources, {AT}: Invalid value: {NONE}: "
            f"{NO_PROVIDER}, resources[0].providers[1].aesgcm.keys: Required value: at least one keys is "
            "required]",
        ),
        (
            configuration(entry("secrets"), foo=1),
            'strict decoding error: unknown field "foo"',
        ),
        (
            secrets({"rot13": {}}),
            f'strict decoding error: unknown field "{AT}.rot13"',
        ),
        (
            keys({**KEY, "x": "y"}),
            f'strict decoding error: unknown field "{AT}.aesgcm.keys[0].x"',
        ),
        (
            configuration(entry("secrets"), kind="X"),
            'no kind "X" is registered for version "apiserver.config.k8s.io/v1"',
        ),
        (
            configuration(entry("secrets"), apiVersion="v1"),
            'no kind "EncryptionConfiguration" is registered for version "v1"',
        ),
        (configuration(entry("secrets"), apiVersion=""), "Object 'apiVersion' is missing"),
        (configuration(entry("secrets"), kind=""), "Object 'Kind' is missing"),
    ],
)
def test_what_kubernetes_refuses(data: bytes, fault: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_configuration(data)
    assert str(refused.value) == fault


def test_no_key_is_shown() -> None:
    """Unlike Kubernetes, which shows the keys of this one."""
    shown = (
        '{"AESGCM":{"Keys":[{"Name":"k","Secret":"REDACTED"}]},"AESCBC":null,"Secretbox":null,"Identity":{}'
    )
    with pytest.raises(ConfigurationError) as refused:
        read_configuration(secrets({**GCM, "identity": {}}))
    assert str(refused.value) == f'{AT}: Invalid value: {shown},"KMS":null}}: {TOO_MANY}'


@pytest.mark.parametrize(
    ("earlier", "later", "rule"),
    [
        ("*.", "secrets", "*."),
        ("*.*", "deployments.apps", "*.*"),
        ("*.*", "*.apps", "*.*"),
        ("*.apps", "deployments.apps", "*.apps"),
        ("*.*", "*.*", "*.*"),
    ],
)
def test_what_is_masked(earlier: str, later: str, rule: str) -> None:
    read = read_configuration(configuration(entry(earlier), entry(later)))
    with pytest.raises(ConfigurationError) as refused:
        providers_of(read)
    assert str(refused.value) == f'resource "{later}" is masked by earlier rule "{rule}"'


def test_a_resource_named_twice_has_both() -> None:
    identity: dict[str, Any] = {"identity": {}}
    read = read_configuration(
        configuration(entry("secrets"), entry("secrets", "leases.coordination.k8s.io", providers=[identity]))
    )
    found = providers_of(read)
    assert [one.identity is not None for one in found["secrets", ""]] == [False, True]
    assert list(found) == [("secrets", ""), ("leases", "coordination.k8s.io")]


def test_the_form_of_before_is_taken() -> None:
    read = read_configuration(configuration(entry("secrets"), kind="EncryptionConfig", apiVersion="v1"))
    assert list(providers_of(read)) == [group_resource("secrets")]
