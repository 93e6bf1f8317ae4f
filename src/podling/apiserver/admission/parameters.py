"""Nobody has policies look for them at what they may not read themselves: objects of the kind of a policy's
parameters, and those that a binding chooses of them. Who is in `system:masters` is not asked."""

from __future__ import annotations

from typing import ClassVar

from podling.apiserver.admission.plugin import ANY, Attributes, Handles, May
from podling.apiserver.authz.authorizers import Decision, settled
from podling.apiserver.request.context import Find
from podling.apiserver.request.request import RequestInfo, User
from podling.apiserver.rules.field import forbidden
from podling.model.errors import StatusError, invalid
from podling.model.scheme import Resource, by_kind, resource_of
from podling.model.types.admissionregistration import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    ParamKind,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from podling.model.types.rbac import MASTERS

Policy = ValidatingAdmissionPolicy | MutatingAdmissionPolicy
Binding = ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding


def _target(type_: type[Policy | Binding]) -> str:
    resource = resource_of(type_)
    return f"{resource.plural}.{resource.group}"


class PolicyParameters:
    """Refuses a policy whose writer may not read all objects of the kind of its parameters."""

    handles: ClassVar[Handles] = {
        _target(one): ("CREATE", "UPDATE") for one in (ValidatingAdmissionPolicy, MutatingAdmissionPolicy)
    }

    def __init__(self, may: May) -> None:
        self._may = may

    async def admit(self, attributes: Attributes, new: Policy, old: Policy | None) -> None:
        """Raises StatusError 422."""
        kind, user = new.spec.param_kind, attributes.user
        if kind is None or MASTERS in user.groups or (old is not None and kind == old.spec.param_kind):
            return
        refused = await _refused(self._may, user, _asked("get", kind, ANY, ANY))
        if refused is not None:
            why = refused or (
                f'user {_told(user)} must have "get" permission on all objects of the referenced paramKind '
                f"(kind={kind.kind}, apiVersion={kind.api_version})"
            )
            raise _refusal(attributes, new, "spec.paramKind", why)


class BindingParameters:
    """Refuses a binding whose writer may not read the parameters that it chooses."""

    POLICIES: ClassVar[dict[Resource, type[Policy]]] = {
        resource_of(ValidatingAdmissionPolicyBinding): ValidatingAdmissionPolicy,
        resource_of(MutatingAdmissionPolicyBinding): MutatingAdmissionPolicy,
    }
    handles: ClassVar[Handles] = {
        _target(one): ("CREATE", "UPDATE")
        for one in (ValidatingAdmissionPolicyBinding, MutatingAdmissionPolicyBinding)
    }

    def __init__(self, find: Find, may: May) -> None:
        self._find, self._may = find, may

    async def admit(self, attributes: Attributes, new: Binding, old: Binding | None) -> None:
        """Raises StatusError 422."""
        ref, user = new.spec.param_ref, attributes.user
        if ref is None or MASTERS in user.groups:
            return
        policy = self._find(self.POLICIES[attributes.resource], "", new.spec.policy_name)
        kind = policy.spec.param_kind if policy is not None else None
        asked = _asked("get" if ref.name else "list", kind, ref.namespace, ref.name)
        refused = await _refused(self._may, user, asked)
        if refused is None:
            return
        unknown = ""
        if policy is None:
            unknown = f"get policy {new.spec.policy_name}"
        elif kind is not None and by_kind(kind.api_version, kind.kind) is None:
            unknown = f"resolve paramKind &{{{kind.api_version} {kind.kind}}}"
        who, verb = _told(user), asked.verb
        if unknown:
            why = (
                f"unable to {unknown} to determine minimum required permissions and user {who} does not have "
                f'"{verb}" permission for all groups, versions and resources'
            )
        else:
            # Of bindings of mutating policies Kubernetes tells the two the other way round.
            if isinstance(new, MutatingAdmissionPolicyBinding):
                who, verb = verb, who
            why = f'user {who} does not have "{verb}" permission on the object referenced by paramRef'
        raise _refusal(attributes, new, "spec.paramRef", refused or why)


def _asked(verb: str, kind: ParamKind | None, namespace: str, name: str) -> RequestInfo:
    """Of a kind that is not known everything has to be allowed that may be meant."""
    group = version = plural = ANY
    if kind is not None:
        group, _, version = kind.api_version.rpartition("/")
        resource = by_kind(kind.api_version, kind.kind)
        plural = resource.plural if resource is not None else ANY
    return RequestInfo(verb, "", True, group, version, namespace, plural, name=name)


async def _refused(may: May, user: User, asked: RequestInfo) -> str | None:
    """What went wrong, if something did; None if it is allowed."""
    opinion = await settled(lambda: may(user, asked))
    if opinion.error:
        return f"failed to authorize request: {opinion.error}"
    return None if opinion.decision is Decision.ALLOW else ""


def _told(user: User) -> str:
    """As Go shows it."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"


def _refusal(attributes: Attributes, new: Policy | Binding, path: str, why: str) -> StatusError:
    of = attributes.resource
    return invalid(of.kind, new.metadata.name, [forbidden(path, why)], of.group)
