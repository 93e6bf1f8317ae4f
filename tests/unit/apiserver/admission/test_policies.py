"""R-SYS-8: admission policies are evaluated when something is written. `tests/peer/test_policies.py` asks
Kubernetes the same and much more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Answer, Conversation

GROUP = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ABOUT = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["configmaps"],
}
LONG = "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))"
APPLIED = "Object{metadata: Object.metadata{labels: Object.metadata.labels{a: 'b'}}}"


async def write(
    api: Conversation, kind: str, name: str, spec: dict[str, Any], binding: dict[str, Any]
) -> None:
    spec = {"matchConstraints": {"resourceRules": [ABOUT]}, **spec}
    plural = f"{GROUP}/{kind.lower()}admissionpolic"
    made = await api.say("POST", f"{plural}ies", {"metadata": {"name": name}, "spec": spec})
    assert made.status == 201, made.body
    body = {"metadata": {"name": name}, "spec": {"policyName": name, **binding}}
    made = await api.say("POST", f"{plural}ybindings", body)
    assert made.status == 201, made.body


async def validate(api: Conversation, *actions: str, **spec: Any) -> None:
    binding: dict[str, Any] = {"validationActions": list(actions) or ["Deny"]}
    if "paramRef" in spec:
        binding["paramRef"] = spec.pop("paramRef")
    await write(api, "Validating", "p", spec, binding)


async def create(api: Conversation, name: str = "a", **data: str) -> Answer:
    return await api.say("POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": data})


async def test_a_denial_is_told_in_kubernetes_words(api: Conversation) -> None:
    await validate(api, validations=[{"expression": "object.data.k == 'v'", "message": "no"}])
    assert (await create(api, k="v")).status == 201
    refused = await create(api, "b", k="w")
    assert refused.status == 422
    told = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no"
    assert refused.message == f'configmaps "b" is forbidden: {told}'
    assert refused.body["details"]["causes"] == [{"message": told}]


async def test_a_warning_lets_the_write_be(api: Conversation) -> None:
    expression = {"expression": "false", "messageExpression": "'told of ' + object.metadata.name"}
    await validate(api, "Warn", "Audit", validations=[expression])
    made = await create(api)
    assert made.status == 201
    assert made.headers["Warning"].endswith("with binding 'p': told of a\"")


@pytest.mark.parametrize(("policy", "code"), [("Fail", 422), ("Ignore", 201)])
async def test_what_fails_is_decided_by_the_failure_policy(api: Conversation, policy: str, code: int) -> None:
    await validate(api, failurePolicy=policy, validations=[{"expression": "object.data.absent == 'a'"}])
    made = await create(api, k="v")
    assert made.status == code
    if code == 422:
        assert made.message.endswith("resulted in error: no such key: absent")


async def test_what_costs_too_much_fails(api: Conversation) -> None:
    await validate(api, validations=[{"expression": LONG}])
    assert (await create(api)).message.endswith("operation cancelled: actual cost limit exceeded")


async def test_variables_and_conditions(api: Conversation) -> None:
    await validate(
        api,
        matchConditions=[{"name": "a", "expression": "request.operation == 'CREATE'"}],
        variables=[{"name": "n", "expression": "int(object.data.n)"}],
        validations=[{"expression": "variables.n < 3"}],
    )
    assert (await create(api, n="2")).status == 201
    assert (await create(api, "b", n="3")).message.endswith("failed expression: variables.n < 3")
    changed = await api.say("PUT", f"{CONFIG_MAPS}/a", {"metadata": {"name": "a"}, "data": {"n": "9"}})
    assert changed.status == 200, "the condition is about creations"


async def test_parameters(api: Conversation) -> None:
    assert (await create(api, "limits", most="2")).status == 201
    reference = {"name": "limits", "parameterNotFoundAction": "Deny"}
    await validate(
        api,
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        paramRef=reference,
        validations=[{"expression": "object.data.n <= params.data.most"}],
    )
    assert (await create(api, n="1")).status == 201
    assert (await create(api, "b", n="3")).status == 422
    await api.say("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    body = {"metadata": {"name": "a"}, "data": {"n": "1"}}
    missing = await api.say("POST", "/api/v1/namespaces/other/configmaps", body)
    assert "no params found for policy binding with `Deny` parameterNotFoundAction" in missing.message


async def test_a_deletion_has_an_old_object_alone(api: Conversation) -> None:
    await create(api, keep="yes")
    await validate(api, validations=[{"expression": "object != null || oldObject.data.keep != 'yes'"}])
    assert (await api.say("DELETE", f"{CONFIG_MAPS}/a")).status == 422


async def test_a_policy_that_is_gone_decides_no_more(api: Conversation) -> None:
    await validate(api, validations=[{"expression": "false"}])
    assert (await create(api)).status == 422
    await api.say("DELETE", f"{GROUP}/validatingadmissionpolicybindings/p")
    assert (await create(api)).status == 201


async def test_nobody_is_kept_from_removing_a_policy(api: Conversation) -> None:
    everything = {key: ["*"] for key in ("apiGroups", "apiVersions", "operations")} | {"resources": ["*/*"]}
    about = {"resourceRules": [everything]}
    await validate(api, matchConstraints=about, validations=[{"expression": "false"}])
    assert (await create(api)).status == 422
    assert (await api.say("DELETE", f"{GROUP}/validatingadmissionpolicies/p")).status == 200


async def mutate(api: Conversation, name: str, kind: str, expression: str, **spec: Any) -> None:
    mutation = {"patchType": kind, f"{kind[0].lower()}{kind[1:]}": {"expression": expression}}
    if kind == "JSONPatch":
        mutation = {"patchType": kind, "jsonPatch": {"expression": expression}}
    about = {**ABOUT, "operations": ["CREATE", "UPDATE"]}
    spec = {"matchConstraints": {"resourceRules": [about]}, "reinvocationPolicy": "Never", **spec}
    await write(api, "Mutating", name, {**spec, "mutations": [mutation]}, {})


async def test_an_object_is_merged(api: Conversation) -> None:
    await mutate(api, "m", "ApplyConfiguration", APPLIED)
    made = await api.say("POST", CONFIG_MAPS, {"metadata": {"name": "a", "labels": {"x": "y"}}})
    assert made.body["metadata"]["labels"] == {"x": "y", "a": "b"}


async def test_a_patch_is_applied_and_validated(api: Conversation) -> None:
    patch = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': object.data.k}}]"
    await mutate(api, "m", "JSONPatch", patch)
    assert (await create(api, k="v")).body["metadata"]["labels"] == {"a": "v"}
    assert (await create(api, "b", k="not a label")).status == 422
    failed = await create(api, "c")
    assert failed.status == 403
    assert failed.message.startswith("policy 'm' with binding 'm' denied request: expression '")


async def test_a_policy_looks_again_at_what_was_changed_after_it(api: Conversation) -> None:
    seen = "[JSONPatch{op: 'add', path: '/data/seen', value: string(has(object.data.late))}]"
    await mutate(api, "a", "JSONPatch", seen, reinvocationPolicy="IfNeeded")
    late = "has(object.data.late) ? [] : [JSONPatch{op: 'add', path: '/data/late', value: 'x'}]"
    await mutate(api, "b", "JSONPatch", late)
    assert (await create(api, k="v")).body["data"] == {"k": "v", "late": "x", "seen": "true"}


async def test_what_is_replaced_as_a_whole_is_not_merged(api: Conversation) -> None:
    expression = "Object{data: Object.data{k: 'w'}, metadata: Object.wrong{}}"
    await mutate(api, "m", "ApplyConfiguration", expression)
    assert 'unexpected type name "Object.wrong"' in (await create(api, k="v")).message
