"""What the file of `--admission-control-config-file` may say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podling.apiserver.admission.configuration import (
    ConfiguredPlugins,
    ImagePolicySettings,
    read_configuration,
)
from podling.apiserver.admission.plugin_options import EventLimit, PluginOptions, TolerationOptions
from podling.apiserver.admission.pod_security import SecurityPolicy
from podling.apiserver.admission.pod_security_plugin import (
    Exemptions,
    PodSecurityOptions,
    SecurityPolicies,
)
from podling.apiserver.rules.configuration_file import ConfigurationError
from podling.model.types.pod import Toleration

HEAD = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
POD_SECURITY = {
    "apiVersion": "pod-security.admission.config.k8s.io/v1",
    "kind": "PodSecurityConfiguration",
    "defaults": {"enforce": "baseline", "enforce-version": "v1.30", "warn": "restricted"},
    "exemptions": {"usernames": ["u"], "runtimeClasses": ["r"], "namespaces": ["n"]},
}
READ = PodSecurityOptions(
    SecurityPolicies(SecurityPolicy("baseline", 30), SecurityPolicy(), SecurityPolicy("restricted")),
    Exemptions(frozenset({"u"}), frozenset({"n"}), frozenset({"r"})),
)
EVENTS = {
    "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1",
    "kind": "Configuration",
    "limits": [{"type": "User", "qps": 1, "burst": 2}, {"type": "Server", "qps": 3, "burst": 4}],
}
TOLERATIONS = {
    "apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1",
    "kind": "Configuration",
    "default": [{"key": "a", "operator": "Exists"}],
}
SELECTORS = {"podNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "a=b"}}
IMAGES = {"imagePolicy": {"kubeConfigFile": "f", "allowTTL": -1, "denyTTL": 2, "retryBackoff": 30}}
ALL = {"PodSecurity", "EventRateLimit", "PodTolerationRestriction", "PodNodeSelector", "ImagePolicyWebhook"}
NEEDS_NONE = ALL - {"EventRateLimit", "ImagePolicyWebhook"}


def said(name: str = "PodSecurity", **plugin: Any) -> dict[str, Any]:
    return {**HEAD, "plugins": [{"name": name, **plugin}]}


def read(data: Any, *plugins: str) -> ConfiguredPlugins:
    others = {"other.yaml": msgspec.json.encode(POD_SECURITY), "empty.yaml": b"null"}
    return read_configuration(msgspec.json.encode(data), others.__getitem__, plugins or NEEDS_NONE)


@pytest.mark.parametrize("plugin", [{"configuration": POD_SECURITY}, {"path": "other.yaml"}])
def test_what_is_said_here_or_in_another_file_is_read(plugin: Any) -> None:
    assert read(said(**plugin)).options.pod_security == READ


@pytest.mark.parametrize("data", [HEAD, said(), said(path="empty.yaml"), said("Nope", configuration={})])
def test_nothing_needs_to_be_said(data: Any) -> None:
    assert read(data) == ConfiguredPlugins(PluginOptions(), None)


def test_each_plugin_is_told_its_own() -> None:
    given = {
        "EventRateLimit": EVENTS,
        "PodTolerationRestriction": TOLERATIONS,
        "PodNodeSelector": SELECTORS,
        "ImagePolicyWebhook": IMAGES,
    }
    entries = [{"name": name, "configuration": one} for name, one in given.items()]
    assert read({**HEAD, "plugins": entries}, *ALL) == ConfiguredPlugins(
        PluginOptions(
            event_limits=[EventLimit("User", 1, 2, 4096), EventLimit("Server", 3, 4, 4096)],
            tolerations=TolerationOptions([Toleration(key="a", operator="Exists")], []),
            node_selectors={"clusterDefaultNodeSelector": "a=b"},
        ),
        ImagePolicySettings("f", 0.0, 2.0, 0.03, fails_open=False),
    )


def test_what_is_off_is_not_looked_at_and_the_first_entry_counts() -> None:
    entries: list[Any] = [{"name": name, "configuration": []} for name in ALL]
    assert read({**HEAD, "plugins": entries}, "LimitRanger") == ConfiguredPlugins(PluginOptions(), None)
    both: tuple[Any, ...] = (SELECTORS, [])
    twice = [{"name": "PodNodeSelector", "configuration": one} for one in both]
    assert read({**HEAD, "plugins": twice}, "PodNodeSelector").options.node_selectors == {
        "clusterDefaultNodeSelector": "a=b"
    }


def test_a_plugin_may_have_the_file_for_itself() -> None:
    """As before there was an AdmissionConfiguration."""
    told = read({**SELECTORS, **IMAGES}, "PodNodeSelector")
    assert told.options.node_selectors == {"clusterDefaultNodeSelector": "a=b"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ([], "couldn't get version/kind"),
        ({**HEAD, "kind": "Other"}, 'no kind "Other" is registered for version "apiserver.config.k8s.io/v1"'),
        ({**HEAD, "other": 1}, 'strict decoding error: unknown field "other"'),
        ({**HEAD, "plugins": [{"name": 1}]}, "AdmissionPluginConfiguration.plugins.name of type string"),
        (said("EventRateLimit"), 'plugin "EventRateLimit": limits: Invalid value: null: must not be empty'),
        (
            said("EventRateLimit", configuration={**EVENTS, "limits": [{"type": "X", "qps": 1, "burst": 1}]}),
            'limits[0].type: Unsupported value: "X": supported values: "Server", "Namespace", "User"',
        ),
        (said("EventRateLimit", configuration={**EVENTS, "limits": [{"x": 1}]}), '"limits[0].x"'),
        (
            said("PodTolerationRestriction", configuration={**TOLERATIONS, "whitelist": [{}]}),
            "whitelist[0].operator: Invalid value",
        ),
        (said("PodNodeSelector", configuration={"x": 1}), 'unknown field "x"'),
        (said("ImagePolicyWebhook"), "no config specified"),
        (said("ImagePolicyWebhook", configuration={}), "no configuration has been provided"),
        (
            said("ImagePolicyWebhook", configuration={"imagePolicy": {"denyTTL": 1801}}),
            "valid value is between 1s and 30m0s, got 30m1s",
        ),
        (said(configuration={**POD_SECURITY, "apiVersion": "v1"}), 'registered for version "v1"'),
        (said(configuration={**POD_SECURITY, "defaults": {"other": "x"}}), 'field "defaults.other"'),
        (
            said(configuration={**POD_SECURITY, "defaults": {"enforce": "x", "warn-version": "1"}}),
            "[enforce: must be one of privileged, baseline, restricted, warn-version: must be",
        ),
        (said(configuration={**POD_SECURITY, "exemptions": {"users": []}}), 'field "exemptions.users"'),
        (
            said(configuration={**POD_SECURITY, "exemptions": {"usernames": ["a", "a", ""]}}),
            '[exemptions.usernames[1]: Duplicate value: "a", exemptions.usernames[2]: Invalid value: ""',
        ),
        (said("ResourceQuota", configuration={}), "podling does not configure it"),
    ],
)
def test_what_is_wrong_is_named(data: Any, why: str) -> None:
    entries = data.get("plugins", ()) if isinstance(data, dict) else ()
    with pytest.raises(ConfigurationError) as refused:
        read(data, *(str(entry["name"]) for entry in entries))
    assert why in str(refused.value)
