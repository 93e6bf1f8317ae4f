"""The plugins that evaluate admission policies. Policies and their bindings are compiled when one of them
changes; without any, a write costs a comparison."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from podling.apiserver.admission.expressions import Met, asked, conditions_met, evaluated, names_of
from podling.apiserver.admission.forms import Form
from podling.apiserver.admission.matching import Match, is_asked_about, is_namespace
from podling.apiserver.admission.mutations import MutationError, encoded, expression_of, mutated
from podling.apiserver.admission.mutations import refusal as refusal_of_mutations
from podling.apiserver.admission.plugin import ANY, Attributes, Handles, May, Objects, Reinvocation
from podling.apiserver.admission.policies import (
    FAILURES,
    Denial,
    Judged,
    failure_annotation,
    joined,
    judged,
    match_of,
    refusal,
    size_of,
    warning,
)
from podling.model.codec import json
from podling.model.codec.strict import field_faults, strict_message
from podling.model.errors import Cause, StatusError, internal, not_found
from podling.model.scheme import Resource, by_kind
from podling.model.selectors import from_label_selector
from podling.model.types.admissionregistration import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingAdmissionPolicySpec,
    Mutation,
    ParamKind,
    ParamRef,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from podling.model.types.core import Namespace
from podling.process.waits import Turn

P = TypeVar("P", ValidatingAdmissionPolicy, MutatingAdmissionPolicy)
B = TypeVar("B", ValidatingAdmissionPolicyBinding, MutatingAdmissionPolicyBinding)
_CONTROL = re.compile("[\x00-\x1f\x7f]")
CHANGES: Handles = {ANY: ("CREATE", "UPDATE", "DELETE", "CONNECT")}


class ParameterError(Exception):
    """A policy or binding cannot be evaluated as it stands; `failurePolicy` says what follows."""


class Bound(NamedTuple, Generic[B]):
    binding: B
    match: Match


class Definition(NamedTuple, Generic[P, B]):
    policy: P
    match: Match
    bindings: Sequence[Bound[B]]


class Invocation(NamedTuple):
    """One evaluation of a mutating policy."""

    policy: MutatingAdmissionPolicy
    binding: MutatingAdmissionPolicyBinding
    form: Form
    param: Any

    @property
    def key(self) -> tuple[str, ...]:
        meta = (self.param or {}).get("metadata", {})
        of_param = meta.get("namespace", ""), meta.get("name", "")
        return self.policy.metadata.name, self.binding.metadata.name, *of_param


class Policies(Generic[P, B]):
    """Those that have bindings, by name."""

    def __init__(self, objects: Objects, policy: type[P], binding: type[B]) -> None:
        self._objects = objects
        self._types: tuple[type[P], type[B]] = policy, binding
        self._changes = (-1, -1)
        self._compiled: Sequence[Definition[P, B]] = ()

    def current(self) -> Sequence[Definition[P, B]]:
        policy, binding = self._types
        changes = self._objects.changes(policy), self._objects.changes(binding)
        if changes != self._changes:
            self._changes, self._compiled = changes, tuple(self._all())
        return self._compiled

    def _all(self) -> list[Definition[P, B]]:
        policy, binding = self._types
        bound: dict[str, list[Bound[B]]] = defaultdict(list)
        for one in sorted(self._objects.all(binding), key=lambda one: one.metadata.name):
            match = match_of(one.spec.match_resources, binding=True)
            bound[one.spec.policy_name].append(Bound(one, match))
        return [
            Definition(one, match_of(one.spec.match_constraints), bound[one.metadata.name])
            for one in sorted(self._objects.all(policy), key=lambda one: one.metadata.name)
            if one.metadata.name in bound
        ]


class Matcher:
    """Finds what policies need to know of one write."""

    def __init__(self, objects: Objects, may: May) -> None:
        self._objects = objects
        self._ask = asked(may)

    def labels(self, name: str) -> Mapping[str, str]:
        """Raises StatusError 404."""
        namespace = self._objects.find(Namespace, "", name)
        if namespace is None:
            raise not_found("namespaces", name)
        return namespace.metadata.labels

    def names(self, attributes: Attributes, form: Form, new: Any, old: Any) -> dict[str, Any]:
        namespace = None
        if attributes.namespace and not is_namespace(attributes):
            namespace = self._objects.find(Namespace, "", attributes.namespace)
        return names_of(attributes, form, new, old, namespace, self._ask)

    def params(self, kind: ParamKind | None, ref: ParamRef | None, namespace: str) -> Sequence[Any]:
        """The parameters of a binding, as data; None stands for no parameter. Raises ParameterError."""
        if kind is None or ref is None:
            return [None]
        resource = by_kind(kind.api_version, kind.kind)
        assert resource is not None
        within = ""
        if resource.namespaced:
            within = ref.namespace or namespace
            if not within:
                raise ParameterError(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                )
        elif ref.namespace:
            raise ParameterError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        found = self._found(resource, ref, within)
        if not found and ref.parameter_not_found_action == "Deny":
            raise ParameterError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return [{**json.decode_data(json.encode(one)), **_kind(kind)} for one in found]

    def _found(self, resource: Resource, ref: ParamRef, within: str) -> Sequence[Any]:
        if ref.name:
            one = self._objects.find(resource.type, within, ref.name)
            return [] if one is None else [one]
        assert ref.selector is not None
        selector = from_label_selector(ref.selector)
        every = self._objects.all(resource.type, within)
        return [one for one in every if selector.matches(one.metadata.labels)]


def _kind(kind: ParamKind) -> dict[str, str]:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def check_kind(kind: ParamKind | None) -> None:
    """Raises ParameterError for one that is not served."""
    if kind is not None and by_kind(kind.api_version, kind.kind) is None:
        group, _, version = kind.api_version.rpartition("/")
        raise ParameterError(
            "failed to configure policy: failed to find resource referenced by paramKind: "
            f"'{group}/{version}, Kind={kind.kind}'"
        )


class ValidatingPolicies:
    """Kubernetes' plugin ValidatingAdmissionPolicy."""

    handles: ClassVar[Handles] = CHANGES

    def __init__(self, objects: Objects, may: May) -> None:
        self._policies = Policies(objects, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)
        self._matcher = Matcher(objects, may)

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError for the first denial."""
        policies = self._policies.current()
        if not policies or not is_asked_about(attributes):
            return
        refusals: list[StatusError] = []
        turn = Turn()
        for policy in policies:
            form = policy.match.form(attributes, new, old, self._matcher.labels)
            if form is not None:
                await turn.share()
                refusals += await self._refusals(policy, form, attributes, new, old)
        if refusals:
            raise refusals[0]

    async def _refusals(
        self,
        policy: Definition[ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding],
        form: Form,
        attributes: Attributes,
        new: Any,
        old: Any,
    ) -> list[StatusError]:
        definition = policy.policy
        spec, ignores = definition.spec, definition.spec.failure_policy == "Ignore"
        try:
            check_kind(spec.param_kind)
        except ParameterError as error:
            return [] if ignores else [refusal(attributes, definition, None, Denial(str(error)))]
        refusals: list[StatusError] = []
        said: dict[str, list[str]] = defaultdict(list)
        for binding, match in policy.bindings:
            if match.form(attributes, new, old, self._matcher.labels) is None:
                continue
            try:
                params = self._matcher.params(spec.param_kind, binding.spec.param_ref, attributes.namespace)
            except ParameterError as error:
                if not ignores:
                    denial = Denial(f"failed to configure binding: {error}")
                    refusals.append(refusal(attributes, definition, binding, denial))
                continue
            names = self._matcher.names(attributes, form, new, old)
            for param in params:
                await self._judge(definition, binding, {**names, "params": param}, attributes, refusals, said)
        for key, value in joined(said):
            attributes.sent.annotations.setdefault(f"{definition.metadata.name}/{key}", value)
        return refusals

    async def _judge(
        self,
        definition: ValidatingAdmissionPolicy,
        binding: ValidatingAdmissionPolicyBinding,
        names: Mapping[str, Any],
        attributes: Attributes,
        refusals: list[StatusError],
        said: dict[str, list[str]],
    ) -> None:
        spec = definition.spec
        met: Met = await conditions_met(spec.match_conditions, names)
        if met.errors:
            told = Judged([] if spec.failure_policy == "Ignore" else [Denial(met.error)])
        elif met.all:
            told = await evaluated(size_of(spec), lambda quick: judged(spec, names, quick=quick))
        else:
            return
        for key, value in told.annotations.items():
            said[key].append(value)
        for denial in told.denials:
            self._act(definition, binding, denial, attributes, refusals)
        refusals += [refusal(attributes, definition, binding, one) for one in told.failures]

    def _act(
        self,
        definition: ValidatingAdmissionPolicy,
        binding: ValidatingAdmissionPolicyBinding,
        denial: Denial,
        attributes: Attributes,
        refusals: list[StatusError],
    ) -> None:
        for action in binding.spec.validation_actions:
            if action == "Deny":
                refusals.append(refusal(attributes, definition, binding, denial))
            elif action == "Warn":
                text = warning(definition.metadata.name, binding.metadata.name, denial)
                # Others have no place in a header.
                if not _CONTROL.search(text):
                    attributes.sent.warnings.append(text)
            elif action == "Audit":
                attributes.sent.annotations.setdefault(FAILURES, failure_annotation(binding, denial))


class MutatingPolicies:
    """Kubernetes' plugin MutatingAdmissionPolicy. Policies look at the object one after another, and those
    whose `reinvocationPolicy` asks for it once more if it was changed after they looked."""

    handles: ClassVar[Handles] = {ANY: ("CREATE", "UPDATE", "CONNECT")}

    def __init__(self, objects: Objects, may: May) -> None:
        self._policies = Policies(objects, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding)
        self._matcher = Matcher(objects, may)

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError for a policy that fails."""
        policies = self._policies.current()
        if new is None or not policies or not is_asked_about(attributes):
            return
        kept = attributes.policies = attributes.policies or Reinvocation()
        own = attributes.sent.forms[0]
        if attributes.again and kept.left != attributes.encoded(new, own):
            kept.again |= kept.evaluated
            kept.evaluated.clear()
        told: list[tuple[str, str]] = []
        turn = Turn()
        for invocation in self._invocations(policies, attributes, new, old, told):
            await turn.share()
            await self._mutate(invocation, attributes, new, old, kept, told)
        kept.left = attributes.encoded(new, own) or b""
        if told:
            reason = told[0][1]
            error = attributes.forbidden("admission request denied by policy")
            raise refusal_of_mutations(error, [why for why, _ in told], reason)

    def _invocations(
        self,
        policies: Sequence[Definition[MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding]],
        attributes: Attributes,
        new: Any,
        old: Any,
        told: list[tuple[str, str]],
    ) -> list[Invocation]:
        """What is to be evaluated, decided before anything is changed."""
        found = []
        for policy in policies:
            definition, spec = policy.policy, policy.policy.spec
            form = policy.match.form(attributes, new, old, self._matcher.labels)
            if form is None:
                continue
            fails = spec.failure_policy != "Ignore"
            try:
                check_kind(spec.param_kind)
            except ParameterError as error:
                if fails:
                    told.append((f'policy "{definition.metadata.name}" denied request: {error}', ""))
                continue
            for binding, match in policy.bindings:
                if match.form(attributes, new, old, self._matcher.labels) is None:
                    continue
                try:
                    params = self._matcher.params(
                        spec.param_kind, binding.spec.param_ref, attributes.namespace
                    )
                except ParameterError as error:
                    if fails:
                        told.append(
                            (_denied(definition, binding, f"failed to configure binding: {error}"), "")
                        )
                    continue
                found += [Invocation(definition, binding, form, param) for param in params]
        return found

    async def _mutate(
        self,
        invocation: Invocation,
        attributes: Attributes,
        new: Any,
        old: Any,
        kept: Reinvocation,
        told: list[tuple[str, str]],
    ) -> None:
        definition, binding, form, param = invocation
        spec, key = definition.spec, invocation.key
        names = {**self._matcher.names(attributes, form, new, old), "params": param}
        met = await conditions_met(spec.match_conditions, names)
        failures = list(met.errors[:1] and [met.error])
        if met.all and not failures and (not attributes.again or key in kept.again):
            changed = False
            for mutation in spec.mutations:
                try:
                    changed |= await self._apply(spec, mutation, attributes, form, new, names)
                except MutationError as error:
                    failures.append(str(error))
                names = {**names, "object": attributes.data(new, form)}
            if changed:
                kept.again |= kept.evaluated
                kept.evaluated.clear()
                attributes.changed = True
            if spec.reinvocation_policy == "IfNeeded":
                kept.evaluated.add(key)
        if spec.failure_policy != "Ignore":
            told += [(_denied(definition, binding, why), "Invalid") for why in failures]

    async def _apply(
        self,
        spec: MutatingAdmissionPolicySpec,
        mutation: Mutation,
        attributes: Attributes,
        form: Form,
        new: Any,
        names: Mapping[str, Any],
    ) -> bool:
        """Whether it has changed the object."""
        kind, size = (form.api_version, form.kind), len(expression_of(mutation))
        made = await evaluated(size, lambda quick: mutated(spec, mutation, names, kind, quick=quick))
        if made == names["object"]:
            return False
        resource = by_kind(*kind)
        try:
            if resource is not None and (faults := field_faults(encoded(made), resource.type)):
                raise _undecodable(strict_message(faults[:1]))
            return attributes.write(new, form, encoded(made))
        except StatusError as error:
            if error.code == 400:
                raise _undecodable(error.message[error.message.find("json: ") :]) from error
            raise


def _undecodable(why: str) -> StatusError:
    error = internal(why)
    error.causes = (Cause("", why),)
    return error


def _denied(policy: MutatingAdmissionPolicy, binding: MutatingAdmissionPolicyBinding, why: str) -> str:
    who = f"policy '{policy.metadata.name}' with binding '{binding.metadata.name}'"
    return f"{who} denied request: {why}"
