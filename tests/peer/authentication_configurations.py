"""Configurations of authentication that no server takes, each by what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ISSUER = {"url": "https://issuer.example", "audiences": ["podling"]}
USERNAME = {"claim": "sub", "prefix": ""}
HEAD = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
NO_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def one(
    *, issuer: Mapping[str, Any] | None = None, mappings: Mapping[str, Any] | None = None, **more: Any
) -> Any:
    return {
        "issuer": {**ISSUER, **(issuer or {})},
        "claimMappings": {"username": USERNAME, **(mappings or {})},
        **more,
    }


def configuration(*jwt: Any, **more: Any) -> Any:
    return {**HEAD, **({"jwt": list(jwt)} if jwt else {}), **more}


def of_issuer(**issuer: Any) -> Any:
    return configuration(one(issuer=issuer))


def mapped(**mappings: Any) -> Any:
    return configuration(one(mappings=mappings))


def claims_judged(*rules: Any) -> Any:
    return configuration(one(claimValidationRules=list(rules)))


def users_judged(*rules: Any) -> Any:
    return configuration(one(userValidationRules=list(rules)))


def extra(*entries: Any) -> Any:
    return mapped(extra=list(entries))


EMAIL = {"expression": "claims.email"}
REFUSED: Mapping[str, Any] = {
    "no url": of_issuer(url=""),
    "http": of_issuer(url="http://issuer.example"),
    "user": of_issuer(url="https://a:b@issuer.example"),
    "query": of_issuer(url="https://issuer.example?a=b"),
    "fragment": of_issuer(url="https://issuer.example#a"),
    "no url at all": of_issuer(url="https://iss uer.example/%zz"),
    "own issuer": of_issuer(url="https://kubernetes.default.svc.cluster.local"),
    "two issuers": configuration(one(), one()),
    "discovery http": of_issuer(discoveryURL="http://d.example/x"),
    "discovery same": of_issuer(discoveryURL="https://issuer.example"),
    "discovery same but for a slash": of_issuer(discoveryURL="https://issuer.example/"),
    "discovery query": of_issuer(discoveryURL="https://d.example/x?a=b"),
    "two discoveries": configuration(
        one(issuer={"discoveryURL": "https://d.example/x"}),
        one(issuer={"url": "https://other.example", "discoveryURL": "https://d.example/x"}),
    ),
    "no audiences": of_issuer(audiences=[]),
    "empty audience": of_issuer(audiences=["a", ""]),
    "two audiences": of_issuer(audiences=["a", "b"]),
    "audience twice": of_issuer(audiences=["a", "a"], audienceMatchPolicy="MatchAny"),
    "policy alone": of_issuer(audienceMatchPolicy="MatchAll"),
    "policy unknown": of_issuer(audiences=["a", "b"], audienceMatchPolicy="x"),
    "authority": of_issuer(certificateAuthority="x"),
    "authority broken": of_issuer(certificateAuthority=NO_CERTIFICATE),
    "egress": of_issuer(egressSelectorType="x"),
    "no username": mapped(username={}),
    "username claim and expression": mapped(
        username={"claim": "sub", "expression": "claims.sub", "prefix": ""}
    ),
    "username without prefix": mapped(username={"claim": "sub"}),
    "username expression with prefix": mapped(username={"expression": "claims.sub", "prefix": "a"}),
    "username broken": mapped(username={"expression": "claims."}),
    "username unknown": mapped(username={"expression": "claim.sub"}),
    "username user": mapped(username={"expression": "user.username"}),
    "username email": mapped(username=EMAIL),
    "username email optional": mapped(username={"expression": "claims.?email.orValue('')"}),
    "groups both": mapped(groups={"claim": "g", "expression": "claims.g"}),
    "groups without prefix": mapped(groups={"claim": "g"}),
    "groups expression with prefix": mapped(groups={"expression": "claims.g", "prefix": ""}),
    "uid both": mapped(uid={"claim": "u", "expression": "claims.u"}),
    "uid broken": mapped(uid={"expression": "'a"}),
    "extra without key": extra({"valueExpression": "claims.a"}),
    "extra no domain": extra({"key": "a", "valueExpression": "claims.a"}),
    "extra no path": extra({"key": "a.example/", "valueExpression": "claims.a"}),
    "extra capital": extra({"key": "a.example/A", "valueExpression": "claims.a"}),
    "extra domain": extra({"key": "a_b.example/a", "valueExpression": "claims.a"}),
    "extra path": extra({"key": "a.example/a b", "valueExpression": "claims.a"}),
    "extra kubernetes": extra({"key": "kubernetes.io/a", "valueExpression": "claims.a"}),
    "extra k8s": extra({"key": "a.k8s.io/a", "valueExpression": "claims.a"}),
    "extra twice": extra(*({"key": "a.example/a", "valueExpression": "claims.a"} for _ in range(2))),
    "extra without value": extra({"key": "a.example/a"}),
    "extra broken": extra({"key": "a.example/a", "valueExpression": "claims.a +"}),
    "claim rule empty": claims_judged({}),
    "claim rule both": claims_judged({"claim": "a", "requiredValue": "b", "expression": "true"}),
    "claim rule message": claims_judged({"claim": "a", "requiredValue": "b", "message": "c"}),
    "claim rule value": claims_judged({"expression": "true", "requiredValue": "b"}),
    "claim rule twice": claims_judged(*({"claim": "a", "requiredValue": "b"} for _ in range(2))),
    "claim rule expression twice": claims_judged(*({"expression": "claims.a == 'b'"} for _ in range(2))),
    "claim rule string": claims_judged({"expression": "'a'"}),
    "claim rule unknown": claims_judged({"expression": "claims.a == b"}),
    "claim rule user": claims_judged({"expression": "user.username == 'a'"}),
    "claim rule function": claims_judged({"expression": "claims.a.nope()"}),
    "claim rule dyn": claims_judged({"expression": "claims.a"}),
    "user rule empty": users_judged({}),
    "user rule string": users_judged({"expression": "user.username"}),
    "user rule field": users_judged({"expression": "user.name == 'a'"}),
    "user rule claims": users_judged({"expression": "claims.a == 'a'"}),
    "user rule twice": users_judged(*({"expression": "user.username == 'a'"} for _ in range(2))),
    "user rule types": users_judged({"expression": "user.username == 1"}),
    "anonymous path": configuration(anonymous={"enabled": False, "conditions": [{"path": "/livez"}]}),
    "65 issuers": configuration(*(one(issuer={"url": f"https://{i}.example"}) for i in range(65))),
    "no version": {"kind": "AuthenticationConfiguration"},
    "other version": {"apiVersion": "apiserver.config.k8s.io/v2", "kind": "AuthenticationConfiguration"},
    "other kind": {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "Other"},
    "unknown field": configuration(one(nope=1)),
    "unknown field above": configuration(nope=1),
    "wrong type": configuration(one(issuer={"url": 1})),
    "jwt no list": configuration(jwt={}),
    "several faults": configuration(
        one(issuer={"url": "http://a", "audiences": []}, mappings={"username": {}})
    ),
}
ACCEPTED: Mapping[str, Any] = {
    "no host": of_issuer(url="https://"),
    "username number": mapped(username={"expression": "1"}),
    "username list": mapped(username={"expression": "['a']"}),
    "groups prefix": mapped(groups={"prefix": "a"}),
    "groups bool": mapped(groups={"expression": "true"}),
    "groups list of numbers": mapped(groups={"expression": "[1]"}),
    "uid bool": mapped(uid={"expression": "true"}),
    "extra bool": extra({"key": "a.example/a", "valueExpression": "true"}),
    "empty": configuration(),
    "anonymous condition": configuration(anonymous={"enabled": True, "conditions": [{"path": "x"}]}),
    "verified": mapped(username={"expression": "claims.email_verified ? claims.email : ''"}),
    "groups dyn": mapped(groups={"expression": "claims.g"}),
    "groups null": mapped(groups={"expression": "null"}),
}
