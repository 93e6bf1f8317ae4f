"""Configurations of admission plugins: those that no server takes, each by what is wrong with it, and some
that are taken. In each one plugin is on that is off by default, if its name is among the entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HEAD = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
SECURITY = {
    "apiVersion": "pod-security.admission.config.k8s.io/v1",
    "kind": "PodSecurityConfiguration",
}
EVENTS = {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration"}
TOLERATIONS = {"apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1", "kind": "Configuration"}
LIMIT = {"type": "Server", "qps": 1, "burst": 2}
OFF = ("AlwaysDeny", "EventRateLimit", "ImagePolicyWebhook", "PodNodeSelector", "PodTolerationRestriction")
KUBECONFIG = "webhook.conf"
"""In the directory of the test; `{here}` in a configuration is that directory."""


def entry(name: str, configuration: Any = None, **more: Any) -> dict[str, Any]:
    said = {} if configuration is None else {"configuration": configuration}
    return {"name": name, **said, **more}


def plugins(*entries: Any, **more: Any) -> dict[str, Any]:
    return {**HEAD, "plugins": list(entries), **more}


def security(**said: Any) -> dict[str, Any]:
    return plugins(entry("PodSecurity", {**SECURITY, **said}))


def events(*limits: Any, **said: Any) -> dict[str, Any]:
    return plugins(entry("EventRateLimit", {**EVENTS, "limits": list(limits), **said}))


def tolerations(**said: Any) -> dict[str, Any]:
    return plugins(entry("PodTolerationRestriction", {**TOLERATIONS, **said}))


def images(**said: Any) -> dict[str, Any]:
    policy = {"kubeConfigFile": f"{{here}}/{KUBECONFIG}", **said}
    return plugins(entry("ImagePolicyWebhook", {"imagePolicy": policy}))


REFUSED: Mapping[str, Any] = {
    "nothing": None,
    "a list": [],
    "no kind": {"apiVersion": HEAD["apiVersion"]},
    "no version": {"kind": HEAD["kind"]},
    "another kind": {**HEAD, "kind": "Other"},
    "another version": {**HEAD, "apiVersion": "apiserver.config.k8s.io/v1beta1"},
    "an unknown field": {**HEAD, "other": 1},
    "a field by another case": {**HEAD, "Plugins": []},
    "an unknown field of an entry": plugins(entry("PodSecurity", other=1)),
    "plugins that are no list": {**HEAD, "plugins": {"name": "x"}},
    "a name that is no text": plugins({"name": 1}),
    "an empty one": plugins(entry("PodSecurity", {})),
    "a text": plugins(entry("PodSecurity", "x")),
    "a list of one": plugins(entry("PodSecurity", [])),
    "the first of two": plugins(
        entry("PodSecurity", {**SECURITY, "defaults": {"enforce": "x"}}), entry("PodSecurity", SECURITY)
    ),
    "security: version": security(apiVersion="v1"),
    "security: kind": security(kind="X"),
    "security: unknown": security(other=1),
    "security: unknown default": security(defaults={"other": "x"}),
    "security: unknown exemption": security(exemptions={"users": []}),
    "security: levels": security(defaults={"enforce": "x", "warn": "b", "audit": "restricted"}),
    "security: versions": security(
        defaults={"enforce-version": "v1", "warn-version": "v2.1", "audit-version": "v1.99"}
    ),
    "security: level and version": security(defaults={"audit": "a", "audit-version": "1"}),
    "security: exemptions": security(
        exemptions={
            "usernames": ["", "a", "a"],
            "namespaces": ["Bad_", "", "b", "b"],
            "runtimeClasses": ["Bad_", "c", "c", ""],
        }
    ),
    "security: a number": security(defaults={"enforce": 1}),
    "security: a list": security(defaults=[]),
    "events: none": plugins(entry("EventRateLimit")),
    "events: empty": events(),
    "events: negative": events(
        {"type": "Namespace", "qps": 1, "burst": 1, "cacheSize": -1},
        {"type": "User", "qps": 0, "burst": 0},
        {"type": "Server", "qps": -1, "burst": 1, "cacheSize": -1},
    ),
    "events: a fraction": events({**LIMIT, "qps": 1.5}),
    "events: a text": events({**LIMIT, "burst": "1"}),
    "events: too large": events({**LIMIT, "qps": 1 << 40}),
    "events: version": events(LIMIT, apiVersion="eventratelimit.admission.k8s.io/v1"),
    "events: kind": events(LIMIT, kind="X"),
    "tolerations: version": tolerations(apiVersion="v1"),
    "tolerations: a truth": tolerations(default=[{"key": "a", "effect": True}]),
    "images: none": plugins(entry("ImagePolicyWebhook")),
    "images: no file": images(kubeConfigFile="/no/such/file"),
    "images: too long": images(denyTTL=1801),
    "images: negative": images(retryBackoff=-2),
    "images: too patient": images(retryBackoff=300_001),
    "images: a text": images(allowTTL="1"),
}
OTHERWISE: Mapping[str, str] = {
    # Kubernetes shows the file in these.
    "nothing": "Object 'Kind' is missing",
    "no kind": "Object 'Kind' is missing",
    "no version": "Object 'apiVersion' is missing",
    "an empty one": "Object 'Kind' is missing",
    # It shows a type of Go's.
    "a list": "couldn't get version/kind; json parse error",
    "a text": "couldn't get version/kind; json parse error",
    "a list of one": "couldn't get version/kind; json parse error",
    "tolerations: a truth": "json: cannot unmarshal bool into Go struct field Toleration.default.effect",
    "images: a text": "json: cannot unmarshal string into Go struct field",
    "images: no file": "/no/such/file",
}
"""Those that both refuse, and what podling says where it is not the same."""
STRICTER: Mapping[str, Any] = {
    "events: unknown": (events({**LIMIT, "x": 1}), 'unknown field "limits[0].x"'),
    "tolerations: unknown": (tolerations(defaults=[]), 'unknown field "defaults"'),
    "tolerations: invalid": (
        tolerations(default=[{"key": "a", "operator": "Nope"}]),
        "default[0].operator: Unsupported value",
    ),
    "selectors: unknown": (plugins(entry("PodNodeSelector", {"other": {}})), 'unknown field "other"'),
    "selectors: a number": (
        plugins(entry("PodNodeSelector", {"podNodeSelectorPluginConfig": {"x": 1}})),
        "podNodeSelectorPluginConfig of type string",
    ),
    "images: unknown": (images(other=1), 'unknown field "imagePolicy.other"'),
    "hooks": (plugins(entry("MutatingAdmissionWebhook", {})), "podling does not configure it"),
}
"""Those that Kubernetes takes and podling refuses: what it does not know it does not pass over."""
ACCEPTED: Mapping[str, Any] = {
    "no plugins": HEAD,
    "the older version": {**HEAD, "apiVersion": "apiserver.k8s.io/v1alpha1"},
    "an unknown plugin": plugins(entry("Nope", {})),
    "a plugin that takes none": plugins(entry("LimitRanger", {"a": 1})),
    "no name": plugins({"configuration": SECURITY}),
    "no configuration": plugins(entry("PodSecurity")),
    "the second of two": plugins(
        entry("PodSecurity", SECURITY), entry("PodSecurity", {**SECURITY, "defaults": {"enforce": "x"}})
    ),
    "security": security(defaults={"enforce-version": "v1.99"}),
    "security: v1beta1": security(apiVersion="pod-security.admission.config.k8s.io/v1beta1"),
    "events": events(LIMIT, {**LIMIT, "type": "User", "cacheSize": 3}),
    "tolerations": tolerations(default=[{"key": "a", "operator": "Exists"}]),
    "no tolerations": plugins(entry("PodTolerationRestriction")),
    "selectors": plugins(entry("PodNodeSelector", {"podNodeSelectorPluginConfig": {"x": "not=a=selector"}})),
    "images": images(allowTTL=-1, denyTTL=2, retryBackoff=1, defaultAllow=True),
    "images: a second": images(allowTTL=1),
    "selectors alone": {"podNodeSelectorPluginConfig": {"x": "a=b"}},
}
