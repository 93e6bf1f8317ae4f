"""Configurations of authorization: those that no server takes, each by what is wrong with it, and some that
are taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HEAD = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration"}
CONNECTION = {"type": "KubeConfigFile", "kubeConfigFile": "/dev/null"}
WEBHOOK = {
    "timeout": "3s",
    "subjectAccessReviewVersion": "v1",
    "matchConditionSubjectAccessReviewVersion": "v1",
    "failurePolicy": "Deny",
    "authorizedTTL": "0s",
    "unauthorizedTTL": "0s",
    "connectionInfo": CONNECTION,
}
RBAC = {"type": "RBAC", "name": "rbac"}


def configuration(*authorizers: Any, **more: Any) -> Any:
    return {**HEAD, "authorizers": list(authorizers), **more}


def webhook(drop: str = "", name: str = "first", **changed: Any) -> Any:
    said = {key: value for key, value in {**WEBHOOK, **changed}.items() if key != drop}
    return {"type": "Webhook", "name": name, "webhook": said}


def changed(**fields: Any) -> Any:
    return configuration(webhook(**fields))


def without(field: str) -> Any:
    return configuration(webhook(drop=field))


def conditions(*expressions: Any) -> Any:
    return changed(matchConditions=[{"expression": one} for one in expressions])


REFUSED: Mapping[str, Any] = {
    "no authorizers": configuration(),
    "no authorizers field": HEAD,
    "no version": {"kind": "AuthorizationConfiguration", "authorizers": [RBAC]},
    "no kind": {"apiVersion": HEAD["apiVersion"], "authorizers": [RBAC]},
    "other version": {**configuration(RBAC), "apiVersion": "apiserver.config.k8s.io/v2"},
    "other kind": {**configuration(RBAC), "kind": "AuthenticationConfiguration2"},
    "unknown field": configuration({**RBAC, "nope": 1}),
    "unknown field above": configuration(RBAC, nope=1),
    "unknown field of webhook": changed(nope=1),
    "wrong type": configuration({"type": 1, "name": "a"}),
    "authorizers no list": {**HEAD, "authorizers": {}},
    "wrong duration": changed(timeout="soon"),
    "duration number": changed(timeout=3),
    "no type": configuration({"name": "a"}),
    "unknown type": configuration({"type": "Nope", "name": "a"}),
    "lower case type": configuration({"type": "rbac", "name": "a"}),
    "rbac twice": configuration(RBAC, {"type": "RBAC", "name": "again"}),
    "rbac thrice": configuration(
        RBAC, {"type": "RBAC", "name": "again"}, {"type": "RBAC", "name": "once-more"}
    ),
    "node twice": configuration({"type": "Node", "name": "a"}, {"type": "Node", "name": "b"}),
    "no name": configuration({"type": "RBAC"}),
    "name twice": configuration(RBAC, {"type": "Node", "name": "rbac"}),
    "name with capitals": configuration({"type": "RBAC", "name": "RBAC"}),
    "name with blanks": configuration({"type": "RBAC", "name": "a b"}),
    "name of two labels": configuration({"type": "RBAC", "name": "-.example"}),
    "long name": configuration({"type": "RBAC", "name": "a" * 254}),
    "webhook of rbac": configuration({**RBAC, "webhook": WEBHOOK}),
    "no webhook": configuration({"type": "Webhook", "name": "first"}),
    "empty webhook": configuration({"type": "Webhook", "name": "first", "webhook": {}}),
    "no timeout": without("timeout"),
    "zero timeout": changed(timeout="0s"),
    "negative timeout": changed(timeout="-3s"),
    "long timeout": changed(timeout="31s"),
    "no authorized ttl": without("authorizedTTL"),
    "negative authorized ttl": changed(authorizedTTL="-1s"),
    "negative unauthorized ttl": changed(unauthorizedTTL="-1m"),
    "no version of reviews": without("subjectAccessReviewVersion"),
    "version of reviews": changed(subjectAccessReviewVersion="v2"),
    "no version of conditions": conditions("true")
    | {
        "authorizers": [
            webhook(drop="matchConditionSubjectAccessReviewVersion", matchConditions=[{"expression": "true"}])
        ]
    },
    "version of conditions": changed(matchConditionSubjectAccessReviewVersion="v1beta1"),
    "no failure policy": without("failurePolicy"),
    "failure policy": changed(failurePolicy="Allow"),
    "no connection": without("connectionInfo"),
    "empty connection": changed(connectionInfo={}),
    "connection type": changed(connectionInfo={"type": "Nope"}),
    "no kubeconfig": changed(connectionInfo={"type": "KubeConfigFile"}),
    "empty kubeconfig name": changed(connectionInfo={"type": "KubeConfigFile", "kubeConfigFile": ""}),
    "relative kubeconfig": changed(connectionInfo={"type": "KubeConfigFile", "kubeConfigFile": "a.conf"}),
    "missing kubeconfig": changed(connectionInfo={"type": "KubeConfigFile", "kubeConfigFile": "/nowhere"}),
    "directory as kubeconfig": changed(connectionInfo={"type": "KubeConfigFile", "kubeConfigFile": "/"}),
    "kubeconfig of in-cluster": changed(
        connectionInfo={"type": "InClusterConfig", "kubeConfigFile": "/dev/null"}
    ),
    "in-cluster": changed(connectionInfo={"type": "InClusterConfig"}),
    "condition broken": conditions("request."),
    "condition empty": conditions(""),
    "condition blank": conditions("  "),
    "condition twice": conditions("true", "true"),
    "condition string": conditions("'a'"),
    "condition unknown": conditions("object.spec.a == 'b'"),
    "condition unknown field": conditions("request.name == 'b'"),
    "condition field of attributes": conditions("request.resourceAttributes.nope == 'b'"),
    "condition authorizer": conditions("authorizer.group('').resource('pods').check('get').allowed()"),
    "condition dyn": conditions("dyn(request)"),
    "condition types": conditions("request.user == 1"),
    "condition long": conditions("'" + "a" * 11_000 + "' == request.user"),
    "second condition broken": conditions("true", "request.user ==", "1"),
    "condition without version": configuration(
        webhook(drop="subjectAccessReviewVersion", matchConditions=[{"expression": "request."}])
    ),
    "cache no bool": changed(cacheAuthorizedRequests=1),
    "misnamed rbac": configuration({"type": "RBAC", "name": "a.example"}),
    "misnamed node": configuration({"type": "Node", "name": "nodes"}, RBAC),
    "two misnamed": configuration({"type": "Node", "name": "nodes"}, {"type": "RBAC", "name": "roles"}),
    "misnamed allow": configuration({"type": "AlwaysAllow", "name": "always-allow"}),
    "abac": configuration({"type": "ABAC", "name": "abac"}),
    "65 conditions": conditions(*(f"request.user != '{i}'" for i in range(65))),
    "several faults": configuration(
        {"type": "RBAC"}, webhook(timeout="0s", failurePolicy="x", name=""), webhook(connectionInfo={})
    ),
    "second webhook": configuration(webhook(), webhook(name="second", timeout="1h")),
}
ACCEPTED: Mapping[str, Any] = {
    "rbac": configuration(RBAC),
    "all kinds": configuration(
        RBAC,
        *({"type": type_, "name": type_.lower()} for type_ in ("Node", "AlwaysAllow", "AlwaysDeny")),
    ),
    "beta": {**configuration(RBAC), "apiVersion": "apiserver.config.k8s.io/v1beta1"},
    "alpha": {**configuration(RBAC), "apiVersion": "apiserver.config.k8s.io/v1alpha1"},
}
