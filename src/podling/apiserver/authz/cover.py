"""Which rules of RBAC are covered by others, as Kubernetes compares them: piece by piece.

A piece is one verb on one resource of one API group, or on one path, by one name if the rule has names. A
piece is covered if one rule covers it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from msgspec.structs import replace

from podling.apiserver.authz.rbac import CompiledRole
from podling.model.codec.quoting import quoted_list
from podling.model.types.rbac import PolicyRule

MOST_PIECES = 50_000
"""More than any role has that a person wrote."""
PARTS = ("api_groups", "resources", "non_resource_urls", "resource_names", "verbs")
"""The fields of a rule in the order in which a message shows them."""
TITLES = ("APIGroups", "Resources", "NonResourceURLs", "ResourceNames", "Verbs")


def uncovered(owned: Sequence[PolicyRule], wanted: Sequence[PolicyRule]) -> list[PolicyRule]:
    """The pieces of `wanted` that no rule of `owned` covers. Rules that come to more than MOST_PIECES are not
    taken apart, and count as not covered."""
    if sum(map(count, wanted)) > MOST_PIECES:
        return list(wanted)
    owner = CompiledRole(owned)
    return [piece for rule in wanted for piece in pieces(rule) if not _covers(owner, piece)]


def count(rule: PolicyRule) -> int:
    """The number of its pieces."""
    of_objects = len(rule.api_groups) * len(rule.resources) * max(1, len(rule.resource_names))
    return len(rule.verbs) * (of_objects + len(rule.non_resource_urls))


def pieces(rule: PolicyRule) -> Iterator[PolicyRule]:
    for group, resource, verb in product(rule.api_groups, rule.resources, rule.verbs):
        one = PolicyRule(verbs=[verb], api_groups=[group], resources=[resource])
        if not rule.resource_names:
            yield one
        for name in rule.resource_names:
            yield replace(one, resource_names=[name])
    for url, verb in product(rule.non_resource_urls, rule.verbs):
        yield PolicyRule(verbs=[verb], non_resource_urls=[url])


def compacted(rules: Sequence[PolicyRule]) -> list[PolicyRule]:
    """Pieces with their verbs together, where they differ in nothing else; those of paths stay apart."""
    together: dict[tuple[tuple[str, ...], ...], PolicyRule] = {}
    apart = []
    for rule in rules:
        if rule.non_resource_urls:
            apart.append(rule)
            continue
        key = tuple(tuple(getattr(rule, part)) for part in PARTS[:-1])
        known = together.setdefault(key, replace(rule, verbs=[]))
        known.verbs += [verb for verb in rule.verbs if verb not in known.verbs]
    return [*apart, *together.values()]


def told(rule: PolicyRule) -> str:
    """As Kubernetes shows a rule in a message."""
    fields = zip(TITLES, (getattr(rule, part) for part in PARTS), strict=True)
    return "{" + ", ".join(f"{title}:{quoted_list(texts)}" for title, texts in fields if texts) + "}"


def _covers(owner: CompiledRole, piece: PolicyRule) -> bool:
    """A wildcard is covered only by one as wide: it is looked up as if it were a name."""
    (verb,) = piece.verbs
    if piece.non_resource_urls:
        return owner.allows_path(verb, piece.non_resource_urls[0])
    resource, _, subresource = piece.resources[0].partition("/")
    wanted = piece.resource_names
    # Every name is covered by every name alone, and not by the empty one, which a rule may have.
    return any(
        not names or (wanted and names.issuperset(wanted))
        for names in owner.names(verb, piece.api_groups[0], resource, subresource)
    )
