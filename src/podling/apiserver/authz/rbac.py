"""Role-based access control (rbac.authorization.k8s.io/v1): who is bound to which roles, and what they allow.

Roles and bindings are compiled once for each change of them. What is asked for then takes two look-ups: the
bindings of the user, and in each of their roles the rules for the resource. What they come to is remembered
until a role or binding changes, so that the next question of its kind is one look-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from podling.apiserver.authn.tokens import claimed_subject
from podling.apiserver.authz.authorizers import NO_OPINION, Decision, ListedRules, Opinion, together
from podling.apiserver.request.request import RequestInfo, User
from podling.model.codec.quoting import quoted
from podling.model.remembered import LONGEST
from podling.model.types.rbac import (
    GROUP,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    Subject,
)

ANY = "*"
SERVICE_ACCOUNT, USER, GROUP_OF_USERS = "ServiceAccount", "User", "Group"
REMEMBERED = 8192
"""Questions whose answers are kept until a role or binding changes."""

Name = tuple[str, str]
"""Namespace, empty for what is of the whole cluster, and name."""


class Allowed(NamedTuple):
    """A rule that allows the verb: for the objects of `names`, or for all if it is empty."""

    names: frozenset[str]
    opinion: Opinion


class Verbs(NamedTuple):
    """What a rule says of each of its resources."""

    verbs: frozenset[str]
    groups: frozenset[str]
    names: frozenset[str]


class CompiledRole:
    """The rules of a role, by the resource and by the path that they are for."""

    def __init__(self, rules: Sequence[PolicyRule]) -> None:
        self.rules = rules
        self._resources: dict[str, list[Verbs]] = {}
        self._paths: dict[str, list[frozenset[str]]] = {}
        self._prefixes: dict[str, list[frozenset[str]]] = {}
        for rule in rules:
            verbs = frozenset(rule.verbs)
            compiled = Verbs(verbs, frozenset(rule.api_groups), frozenset(rule.resource_names))
            for resource in dict.fromkeys(rule.resources):
                self._resources.setdefault(resource, []).append(compiled)
            for url in dict.fromkeys(rule.non_resource_urls):
                self._paths.setdefault(url, []).append(verbs)
                if url.endswith(ANY):
                    self._prefixes.setdefault(url.rstrip(ANY), []).append(verbs)
        self._lengths = sorted(set(map(len, self._prefixes)))

    def names(self, verb: str, group: str, resource: str, subresource: str) -> Iterator[frozenset[str]]:
        """The names of each rule that allows the verb; empty for a rule that allows it for all."""
        asked = [resource, ANY]
        if subresource:
            asked = [f"{resource}/{subresource}", f"{ANY}/{subresource}", ANY]
        for one in asked:
            for rule in self._resources.get(one, ()):
                if (verb in rule.verbs or ANY in rule.verbs) and (group in rule.groups or ANY in rule.groups):
                    yield rule.names

    def allows_path(self, verb: str, path: str) -> bool:
        ways = [self._paths.get(path, ())]
        ways += [self._prefixes.get(path[:length], ()) for length in self._lengths]
        return any(verb in verbs or ANY in verbs for way in ways for verbs in way)


class CompiledBinding(NamedTuple):
    """A binding with its role's kind and key, and its subjects as a reason names them."""

    text: str
    role_kind: str
    role: Name
    subjects: tuple[str, ...]


class BoundSubject(NamedTuple):
    """A binding of a user, and the subject that the user is."""

    binding: CompiledBinding
    subject: str

    @property
    def reason(self) -> str:
        role = f"{self.binding.role_kind} {quoted(self.binding.role[1])}"
        return f"RBAC: allowed by {self.binding.text} of {role} to {self.subject}"

    @property
    def missing(self) -> str:
        """What is said when there is no such role."""
        return f"{self.binding.role_kind.lower()}.{GROUP} {quoted(self.binding.role[1])} not found"


class RbacAuthorizer:
    """Allows what a role allows that the user, or a group of the user, is bound to; never denies.

    `changed` tells of each role and binding that is new, different or gone.
    """

    def __init__(self) -> None:
        self._roles: dict[Name, CompiledRole] = {}
        self._bindings: dict[Name, tuple[CompiledBinding, list[str]]] = {}
        self._bound: dict[str, dict[str, dict[str, int]]] = {}
        """Namespace → who → the names of the bindings → which of their subjects it is."""
        self._recall = lru_cache(maxsize=REMEMBERED)(self._find)
        self._recall_path = lru_cache(maxsize=REMEMBERED)(self._find_path)

    @property
    def remembered(self) -> int:
        """How many questions about resources are answered from memory."""
        return self._recall.cache_info().currsize

    @property
    def remembered_paths(self) -> int:
        return self._recall_path.cache_info().currsize

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        who, groups = user.name, user.groups
        if not info.is_resource_request:
            is_short = _is_short(who, groups, info.verb, info.path)
            return (self._recall_path if is_short else self._find_path)(who, groups, info.verb, info.path)
        verb, _, _, group, _, namespace, resource, subresource, name, _, _, _ = info
        is_short = _is_short(who, groups, verb, group, namespace, resource, subresource)
        find = self._recall if is_short else self._find
        allowed, otherwise = find(who, groups, namespace, verb, group, resource, subresource)
        for names, opinion in allowed:
            if not names or name in names:
                return opinion
        return otherwise

    def rules_of(self, user: User, namespace: str) -> ListedRules:
        """What the user may do in a namespace, and everywhere: rule by rule."""
        rules: list[PolicyRule] = []
        missing = []
        for bound in self._bindings_of(user.name, user.groups, namespace):
            role = self._roles.get(bound.binding.role)
            if role is None:
                missing.append(bound.missing)
            else:
                rules += role.rules
        return ListedRules(rules, missing)

    def rules_for(self, kind: str, namespace: str, name: str) -> Sequence[PolicyRule] | None:
        """The rules of a role that a binding in `namespace` refers to; None if there is none."""
        role = self._roles.get((namespace if kind == Role.KIND else "", name))
        return role.rules if role else None

    def changed(self, key: Name, new: Any, type_: type[Any]) -> None:
        """`new` is the object of `key` as it is now, None if it is gone."""
        if issubclass(type_, (Role, ClusterRole)):
            if new is None:
                self._roles.pop(key, None)
            else:
                self._roles[key] = CompiledRole(new.rules)
        else:
            self._unbind(key)
            if new is not None:
                self._bind(key, new)
        self._recall.cache_clear()
        self._recall_path.cache_clear()

    def _bind(self, key: Name, obj: RoleBinding | ClusterRoleBinding) -> None:
        (namespace, name), ref = key, obj.role_ref
        where = f"{name}/{namespace}" if namespace else name
        role = (namespace if ref.kind == Role.KIND else "", ref.name)
        who = [_key(subject, namespace) for subject in obj.subjects]
        told = tuple(_told(subject, namespace) for subject in obj.subjects)
        self._bindings[key] = CompiledBinding(f"{obj.KIND} {quoted(where)}", ref.kind, role, told), who
        bound = self._bound.setdefault(namespace, {})
        for i, one in enumerate(who):
            bound.setdefault(one, {}).setdefault(name, i)

    def _unbind(self, key: Name) -> None:
        namespace, name = key
        _, who = self._bindings.pop(key, (None, []))
        bound = self._bound.get(namespace, {})
        for one in dict.fromkeys(who):
            del bound[one][name]
            if not bound[one]:
                del bound[one]
        if not bound:
            self._bound.pop(namespace, None)

    def _bindings_of(self, name: str, groups: Sequence[str], namespace: str) -> Iterator[BoundSubject]:
        """Those of the whole cluster first, each in order of name."""
        who = [f"{USER} {name}", *(f"{GROUP_OF_USERS} {group}" for group in groups)]
        for where in ("", namespace) if namespace else ("",):
            bound = self._bound.get(where)
            if not bound:
                continue
            found: dict[str, int] = {}
            for one in who:
                for binding, i in bound.get(one, {}).items():
                    found[binding] = min(i, found.get(binding, i))
            for binding, i in sorted(found.items()):
                standing, _ = self._bindings[where, binding]
                yield BoundSubject(standing, standing.subjects[i])

    def _find(
        self,
        user: str,
        groups: tuple[str, ...],
        namespace: str,
        verb: str,
        group: str,
        resource: str,
        subresource: str,
    ) -> tuple[Sequence[Allowed], Opinion]:
        """What allows it, as far as what allows it for all objects; and the opinion if none does."""
        allowed: list[Allowed] = []
        missing = []
        for bound in self._bindings_of(user, groups, namespace):
            role = self._roles.get(bound.binding.role)
            if role is None:
                missing.append(bound.missing)
                continue
            for names in role.names(verb, group, resource, subresource):
                allowed.append(Allowed(names, Opinion(Decision.ALLOW, bound.reason)))
                if not names:
                    return allowed, NO_OPINION
        return allowed, _without_opinion(missing)

    def _find_path(self, user: str, groups: tuple[str, ...], verb: str, path: str) -> Opinion:
        missing = []
        for bound in self._bindings_of(user, groups, ""):
            role = self._roles.get(bound.binding.role)
            if role is None:
                missing.append(bound.missing)
            elif role.allows_path(verb, path):
                return Opinion(Decision.ALLOW, bound.reason)
        return _without_opinion(missing)


def _is_short(user: str, groups: tuple[str, ...], *texts: str) -> bool:
    """Whether a question may be remembered: whoever asks chooses every part of it."""
    return len(user) + sum(map(len, groups)) + sum(map(len, texts)) <= LONGEST


def _key(subject: Subject, namespace: str) -> str:
    """How a subject is looked up. `namespace`: of the binding, for accounts that leave out theirs."""
    if subject.kind != SERVICE_ACCOUNT:
        return f"{subject.kind} {subject.name}"
    if not (subject.namespace or namespace):
        return SERVICE_ACCOUNT
    return f"{USER} {claimed_subject(subject.namespace or namespace, subject.name)}"


def _told(subject: Subject, namespace: str) -> str:
    if subject.kind != SERVICE_ACCOUNT:
        return f"{subject.kind} {quoted(subject.name)}"
    return f"{subject.kind} {quoted(f'{subject.name}/{subject.namespace or namespace}')}"


def _without_opinion(missing: Sequence[str]) -> Opinion:
    return Opinion(Decision.NO_OPINION, f"RBAC: {together(missing)}") if missing else NO_OPINION
