"""Which rights cover which: piece by piece."""

from __future__ import annotations

import pytest

from podling.apiserver.authz import cover
from podling.apiserver.authz.cover import compacted, pieces, told, uncovered
from podling.model.types.rbac import PolicyRule


def rule(verbs: str, groups: str, resources: str, names: str = "") -> PolicyRule:
    return PolicyRule(
        verbs=verbs.split(),
        api_groups=[one.strip("'") for one in groups.split()],
        resources=resources.split(),
        resource_names=names.split(),
    )


def paths(verbs: str, urls: str) -> PolicyRule:
    return PolicyRule(verbs=verbs.split(), non_resource_urls=urls.split())


ROOT = [rule("*", "*", "*"), paths("*", "*")]


@pytest.mark.parametrize(
    ("owned", "wanted", "covered"),
    [
        (rule("get list", "''", "pods"), rule("get", "''", "pods"), True),
        (rule("get", "''", "pods"), rule("*", "''", "pods"), False),
        (rule("*", "''", "pods"), rule("*", "''", "pods"), True),
        (rule("get", "*", "pods"), rule("get", "apps", "pods"), True),
        (rule("get", "apps", "pods"), rule("get", "*", "pods"), False),
        (rule("get", "''", "*"), rule("get", "''", "*/scale"), True),
        (rule("get", "''", "*/scale"), rule("get", "''", "pods/scale"), True),
        (rule("get", "''", "*/scale"), rule("get", "''", "*"), False),
        (rule("get", "''", "pods/log"), rule("get", "''", "pods/*"), False),
        (rule("get", "''", "pods"), rule("get", "''", "pods", "a"), True),
        (rule("get", "''", "pods", "a b"), rule("get", "''", "pods", "a"), True),
        (rule("get", "''", "pods", "a"), rule("get", "''", "pods"), False),
        (paths("get", "/a*"), paths("get", "/a/b*"), True),
        (paths("get", "/a/b*"), paths("get", "/a*"), False),
        (paths("get", "*"), paths("get", "/a*"), True),
        (rule("*", "*", "*"), paths("get", "/a"), False),
    ],
)
def test_one_covers_another(owned: PolicyRule, wanted: PolicyRule, covered: bool) -> None:
    assert (uncovered([owned], [wanted]) == []) is covered


def test_the_empty_name_does_not_cover_every_name() -> None:
    """With it a role may list, and its holder would have given away every object."""
    unnamed = PolicyRule(verbs=["get"], api_groups=[""], resources=["secrets"], resource_names=[""])
    assert uncovered([unnamed], [rule("get", "''", "secrets")]) == [rule("get", "''", "secrets")]
    assert uncovered([unnamed], [unnamed]) == []


def test_several_cover_what_none_covers_whole() -> None:
    owned = [rule("get", "''", "pods"), rule("list", "''", "pods"), rule("get list", "''", "secrets", "a")]
    assert uncovered(owned, [rule("get list", "''", "pods")]) == []
    assert uncovered(owned, [rule("get list watch", "''", "pods secrets")]) == [
        rule("watch", "''", "pods"),
        *(rule(verb, "''", "secrets") for verb in ("get", "list", "watch")),
    ]
    assert uncovered(ROOT, [*ROOT, rule("get", "''", "pods", "a")]) == []


def test_what_is_missing_is_shown_with_its_verbs_together() -> None:
    missing = [*pieces(rule("get delete", "'' apps", "pods", "a")), *pieces(paths("get post", "/x"))]
    assert [told(one) for one in compacted(missing)] == [
        '{NonResourceURLs:["/x"], Verbs:["get"]}',
        '{NonResourceURLs:["/x"], Verbs:["post"]}',
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "delete"]}',
        '{APIGroups:["apps"], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "delete"]}',
    ]


def test_a_rule_of_millions_of_pieces_is_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover, "MOST_PIECES", 8)
    wide = rule("get list watch", "''", "a b c")
    assert uncovered(ROOT, [wide]) == [wide]
