"""R-SYS-4: who may act as whom, by which right, and what the user is that he acts as."""

from __future__ import annotations

import pytest

from podling.apiserver.authz.authorizers import ALLOW, NO_OPINION, MastersAuthorizer, Opinion
from podling.apiserver.authz.impersonation import NODE_NAME, account_of, impersonate, node_of
from podling.apiserver.request.context import Impersonation
from podling.apiserver.request.request import RequestInfo, User, request_info
from podling.model.errors import StatusError
from podling.model.types.rbac import AUTHENTICATED, MASTERS, UNAUTHENTICATED

EVE = User("eve", (AUTHENTICATED,))
ROOT = User("root", (MASTERS, AUTHENTICATED))
LIST_PODS = request_info("GET", "/api/v1/namespaces/n/pods", {})
ACCOUNT = "system:serviceaccount:n:a"
AGENT = User(ACCOUNT, (AUTHENTICATED,), extra=((NODE_NAME, ("worker",)),))


class Rules:
    """Allows what is written down: `VERB RESOURCE[/SUBRESOURCE][.GROUP] [NAMESPACE]/[NAME]`."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[str] = []

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        group = f".{info.api_group}" if info.api_group else ""
        said = f"{info.verb} {resource}{group} {info.namespace}/{info.name}"
        self.asked.append(said)
        return ALLOW if said in self.allowed else NO_OPINION


def acting(rules: Rules, wanted: User, asker: User = EVE, info: RequestInfo = LIST_PODS) -> Impersonation:
    return impersonate([rules], asker, wanted, info)


ON_PODS = "impersonate-on:user-info:list pods n/"
AS_BOB = "impersonate:user-info users.authentication.k8s.io /bob"


def test_the_constrained_way_asks_for_the_action_and_for_the_user() -> None:
    rules = Rules(ON_PODS, AS_BOB)
    assert acting(rules, User("bob")) == Impersonation(
        User("bob", (AUTHENTICATED,)), EVE, "impersonate:user-info"
    )
    assert rules.asked == [ON_PODS, AS_BOB]


def test_each_attribute_is_asked_for() -> None:
    wanted = User("bob", ("g", "h"), "u", (("acme.io/scopes", ("view", "edit")),))
    rest = [
        "impersonate:user-info uids.authentication.k8s.io /u",
        "impersonate:user-info groups.authentication.k8s.io /g",
        "impersonate:user-info groups.authentication.k8s.io /h",
        "impersonate:user-info userextras/acme.io/scopes.authentication.k8s.io /view",
        "impersonate:user-info userextras/acme.io/scopes.authentication.k8s.io /edit",
    ]
    rules = Rules(ON_PODS, AS_BOB, *rest)
    assert acting(rules, wanted).user == wanted._replace(groups=("g", "h", AUTHENTICATED))
    assert rules.asked == [ON_PODS, AS_BOB, *rest]
    for missing in rest:
        with pytest.raises(StatusError):
            acting(Rules(*({ON_PODS, AS_BOB, *rest} - {missing})), wanted)


OLD = [
    (User("bob"), ["impersonate users /bob"], (AUTHENTICATED,)),
    (
        User("bob", ("g",), "u", (("scopes", ("view",)),)),
        [
            "impersonate users /bob",
            "impersonate uids.authentication.k8s.io /u",
            "impersonate groups /g",
            "impersonate userextras/scopes.authentication.k8s.io /view",
        ],
        ("g", AUTHENTICATED),
    ),
    (
        User(ACCOUNT),
        ["impersonate serviceaccounts n/a"],
        ("system:serviceaccounts", "system:serviceaccounts:n", AUTHENTICATED),
    ),
    (
        User(ACCOUNT, ("g",)),
        ["impersonate serviceaccounts n/a", "impersonate groups /g"],
        ("g", AUTHENTICATED),
    ),
    (User("system:node:worker"), ["impersonate users /system:node:worker"], (AUTHENTICATED,)),
    (User("system:anonymous"), ["impersonate users /system:anonymous"], (UNAUTHENTICATED,)),
    (
        User("bob", (UNAUTHENTICATED,)),
        ["impersonate users /bob", f"impersonate groups /{UNAUTHENTICATED}"],
        (UNAUTHENTICATED,),
    ),
]


@pytest.mark.parametrize(("wanted", "allowed", "groups"), OLD)
def test_the_old_way_asks_for_the_user_only(
    wanted: User, allowed: list[str], groups: tuple[str, ...]
) -> None:
    rules = Rules(*allowed)
    assert acting(rules, wanted) == Impersonation(wanted._replace(groups=groups), EVE, "")
    assert rules.asked[-len(allowed) :] == allowed


def test_a_service_account_has_a_way_of_its_own() -> None:
    rules = Rules(
        "impersonate-on:serviceaccount:list pods n/",
        "impersonate:serviceaccount serviceaccounts.authentication.k8s.io n/a",
    )
    found = acting(rules, User(ACCOUNT))
    assert found.constraint == "impersonate:serviceaccount"
    assert found.user.groups == ("system:serviceaccounts", "system:serviceaccounts:n", AUTHENTICATED)


NODE = User("system:node:worker")


def test_a_node_has_the_group_of_nodes() -> None:
    rules = Rules(
        "impersonate-on:arbitrary-node:list pods n/",
        "impersonate:arbitrary-node nodes.authentication.k8s.io /worker",
    )
    found = acting(rules, NODE)
    assert (found.constraint, found.user.groups) == (
        "impersonate:arbitrary-node",
        ("system:nodes", AUTHENTICATED),
    )


def test_an_account_may_be_allowed_to_act_as_the_node_it_is_on() -> None:
    rules = Rules(
        "impersonate-on:associated-node:list pods n/",
        "impersonate:associated-node nodes.authentication.k8s.io /*",
    )
    assert acting(rules, NODE, AGENT).constraint == "impersonate:associated-node"
    for asker, wanted in ((EVE, NODE), (AGENT, User("system:node:other")), (AGENT, NODE._replace(uid="u"))):
        with pytest.raises(StatusError):
            acting(rules, wanted, asker)


@pytest.mark.parametrize(
    "wanted", [User(ACCOUNT, ("g",)), User(ACCOUNT, uid="u"), User("system:node:worker", ("g",))]
)
def test_no_constrained_way_gives_an_account_or_a_node_what_is_not_its_own(wanted: User) -> None:
    rules = Rules()
    with pytest.raises(StatusError):
        acting(rules, wanted)
    assert all(said.startswith("impersonate ") for said in rules.asked)


REFUSED = [
    (
        LIST_PODS,
        'pods is forbidden: User "eve" cannot impersonate-on:user-info:list resource "pods" in API group "" '
        'in the namespace "n"',
    ),
    (
        request_info("GET", "/version", {}),
        'forbidden: User "eve" cannot impersonate-on:user-info:get path "/version"',
    ),
]


@pytest.mark.parametrize(("info", "message"), REFUSED)
def test_the_words_of_a_refusal_are_of_the_first_way(info: RequestInfo, message: str) -> None:
    with pytest.raises(StatusError) as raised:
        acting(Rules(), User("bob"), info=info)
    assert (raised.value.code, raised.value.reason, raised.value.message) == (403, "Forbidden", message)


NEVER = [
    (User("bob", ("",)), "groups", "impersonating the empty string group is not allowed"),
    (User("bob", (MASTERS,)), "groups", "impersonating the system:masters group is not allowed"),
    (
        User("bob", extra=(("", ("v",)),)),
        "userextras",
        "impersonating the empty string key in extra is not allowed",
    ),
    (
        User("bob", extra=(("a.b/c", ("",)),)),
        "userextras",
        "impersonating the empty string value in extra is not allowed",
    ),
    (
        User("bob", extra=(("scopes", ("v",)),)),
        "userextras",
        'impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scopes": '
        'must be a domain-prefixed path (such as "acme.io/foo")',
    ),
    (
        User("bob", extra=(("a.b/c d", ("v",)),)),
        "userextras",
        'impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "c d": '
        r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')",
    ),
]


@pytest.mark.parametrize(("wanted", "resource", "why"), NEVER)
def test_what_no_constrained_way_allows(wanted: User, resource: str, why: str) -> None:
    with pytest.raises(StatusError) as raised:
        acting(Rules(ON_PODS, AS_BOB), wanted)
    assert raised.value.kind == resource
    assert raised.value.message.endswith(f": {why}")
    assert impersonate([MastersAuthorizer()], ROOT, wanted, LIST_PODS).constraint == ""


@pytest.mark.parametrize(
    ("user", "node", "account"),
    [
        ("system:node:a", "a", None),
        ("system:node:A", None, None),
        ("system:node:", None, None),
        ("a", None, None),
        ("system:serviceaccount:n:a.b", None, ("n", "a.b")),
        ("system:serviceaccount:n.m:a", None, None),
        ("system:serviceaccount:n:", None, None),
        ("system:serviceaccount:n:a:b", None, None),
        ("n:a", None, None),
    ],
)
def test_whose_a_user_name_is(user: str, node: str | None, account: tuple[str, str] | None) -> None:
    assert (node_of(user), account_of(user)) == (node, account)
