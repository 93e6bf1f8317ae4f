"""Questions are answered by those who guard the server, and not stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.request.request import User

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

AUTHN, AUTHZ = "/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"
MANAGED = {"managedFields": [{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": [None, None]}]}
GET_PODS = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}


async def test_who_am_i(api: Conversation) -> None:
    await api.server.have_default_roles()
    api.user = User("ann", ("devs", "system:authenticated"), "7", (("k", ("v",)),))
    answer = await api.post(f"{AUTHN}/selfsubjectreviews", {})
    assert answer.status == 201
    assert answer.body["status"]["userInfo"] == {
        "username": "ann",
        "uid": "7",
        "groups": ["devs", "system:authenticated"],
        "extra": {"k": ["v"]},
    }


async def test_who_am_i_has_nothing_of_the_question_but_the_time_of_the_answer(api: Conversation) -> None:
    sent = {"metadata": {"name": "mine", "creationTimestamp": "2000-01-01T00:00:00Z", **MANAGED}}
    answer = await api.post(f"{AUTHN}/selfsubjectreviews", sent)
    assert list(answer.body["metadata"]) == ["creationTimestamp"]
    assert answer.body["metadata"]["creationTimestamp"] > "2001"


async def test_a_question_says_who_asks(api: Conversation) -> None:
    answer = await api.post(f"{AUTHN}/tokenreviews?fieldManager=me", {"spec": {"token": "t"}})
    (entry,) = answer.body["metadata"]["managedFields"]
    assert (entry["manager"], entry["fieldsV1"]) == ("me", {"f:spec": {"f:token": {}}})


@pytest.mark.parametrize(("groups", "allowed"), [(["system:masters"], True), (["strangers"], False)])
async def test_may_he(api: Conversation, groups: list[str], allowed: bool) -> None:
    spec = {**GET_PODS, "user": "ann", "groups": groups}
    for path in ("subjectaccessreviews", "namespaces/default/localsubjectaccessreviews"):
        answer = await api.post(f"{AUTHZ}/{path}", {"spec": spec})
        assert (answer.status, answer.body["status"]["allowed"]) == (201, allowed)


async def test_may_i(api: Conversation) -> None:
    mine = await api.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": GET_PODS})
    assert mine.body["status"] == {"allowed": True}
    path = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    assert (await api.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": path})).body["status"]["allowed"]


async def test_what_may_i(api: Conversation) -> None:
    await api.server.have_default_roles()
    answer = await api.post(f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    status = answer.body["status"]
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in status["resourceRules"]
    assert {"verbs": ["*"], "nonResourceURLs": ["*"]} in status["nonResourceRules"]
    api.user = User("system:node:n", ("system:nodes",))
    nodes = await api.post(f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    assert nodes.status == 403, "who is not authenticated may not ask"
    api.user = User("system:node:n", ("system:nodes", "system:authenticated"))
    nodes = await api.post(f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    assert nodes.body["status"]["incomplete"]
    assert nodes.body["status"]["evaluationError"] == (
        "node authorizer does not support user rule resolution"
    )
    api.user = User("root", ("system:masters",))
    assert (await api.post(f"{AUTHZ}/selfsubjectrulesreviews", {})).message == "no namespace on request"


async def test_whose_token(api: Conversation) -> None:
    answer = await api.post(f"{AUTHN}/tokenreviews", {"spec": {"token": "t"}})
    assert answer.body["status"] == {"user": {}, "error": "invalid bearer token"}
    none = await api.post(f"{AUTHN}/tokenreviews", {})
    assert (none.status, none.message) == (400, "token is required for TokenReview in authentication")


@pytest.mark.parametrize(
    ("path", "spec", "fault"),
    [
        ("selfsubjectaccessreviews", {}, "exactly one of nonResourceAttributes or resourceAttributes"),
        ("subjectaccessreviews", GET_PODS, "at least one of user or group must be specified"),
        ("namespaces/other/localsubjectaccessreviews", {**GET_PODS, "user": "ann"},
         "must match metadata.namespace"),
    ],
)  # fmt: skip
async def test_faults(api: Conversation, path: str, spec: Any, fault: str) -> None:
    answer = await api.post(f"{AUTHZ}/{path}", {"spec": spec})
    assert answer.status == 422
    assert fault in answer.message


IN_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
SELECTORS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("fieldSelector", {"rawSelector": "a=b"}, []),
    ("fieldSelector", {"requirements": [{"key": "a", "operator": "Later"}]}, []),
    (
        "fieldSelector",
        {},
        [
            "requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, "
            "requirements or rawSelector is required"
        ],
    ),
    (
        "labelSelector",
        {"rawSelector": "a", "requirements": [{"key": "a", "operator": "Exists"}]},
        ['rawSelector: Invalid value: "a": may not specified at the same time as requirements'],
    ),
    (
        "fieldSelector",
        {"requirements": [{"operator": "In"}]},
        [
            "requirements[0].key: Required value: must be specified",
            f"requirements[0].values: Required value: {IN_VALUES}",
        ],
    ),
    (
        "labelSelector",
        {"requirements": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
        [f"requirements[0].values: Forbidden: {NO_VALUES}"],
    ),
]


@pytest.mark.parametrize(("kind", "selector", "faults"), SELECTORS)
async def test_what_is_selected_is_judged(
    api: Conversation, kind: str, selector: dict[str, Any], faults: list[str]
) -> None:
    spec = {"resourceAttributes": {**GET_PODS["resourceAttributes"], kind: selector}}
    answer = await api.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": spec})
    causes = answer.body.get("details", {}).get("causes", [])
    path = f"spec.resourceAttributes.{kind}."
    assert [f"{cause['field']}: {cause['message']}" for cause in causes] == [path + one for one in faults]


async def test_a_question_is_no_object(api: Conversation) -> None:
    for path, why in (
        ("selfsubjectaccessreviews", "must be empty"),
        ("namespaces/default/localsubjectaccessreviews", "must be empty except for namespace"),
    ):
        body = {"metadata": {"finalizers": ["a/b"]}, "spec": {**GET_PODS, "user": "u"}}
        answer = await api.post(f"{AUTHZ}/{path}", body)
        assert answer.status == 422 and answer.message.endswith(f": {why}")


async def test_reviews_are_only_posted(api: Conversation) -> None:
    assert (await api.get(f"{AUTHN}/tokenreviews")).status == 405
    assert (await api.get(f"{AUTHN}/tokenreviews/x")).status == 404


async def test_admission_is_asked_about_questions_too(api: Conversation) -> None:
    rule = {"operations": ["CREATE"], "apiGroups": [AUTHN.split("/")[2]], "apiVersions": ["v1"]}
    policy = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["*"]}]},
        "validations": [{"expression": "false", "message": "no questions"}],
    }
    binding = {"policyName": "p", "validationActions": ["Deny"]}
    for kind, spec in (("policies", policy), ("policybindings", binding)):
        target = f"/apis/admissionregistration.k8s.io/v1/validatingadmission{kind}"
        assert (await api.post(target, {"metadata": {"name": "p"}, "spec": spec})).status == 201
    answer = await api.post(f"{AUTHN}/selfsubjectreviews", {})
    assert (answer.status, "denied request: no questions" in answer.body["message"]) == (422, True)
    assert (await api.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": GET_PODS})).status == 201
