"""What the expressions of webhooks and policies may name, and how several of them are evaluated within one
budget.

A webhook's matchConditions, for example:

    names = names_of(attributes, form, new, old, namespace, ask)
    met = await conditions_met(webhook.match_conditions, names)
    if met.errors: ...  # what `failurePolicy` says
    elif met.all: ...   # the webhook is to be asked
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from itertools import takewhile
from typing import Any, NamedTuple, TypeVar

from podling.apiserver.admission.forms import Form
from podling.apiserver.admission.matching import is_namespace
from podling.apiserver.admission.plugin import Attributes, May
from podling.apiserver.authz.authorizers import Decision, settled, settled_later
from podling.apiserver.cel.authorizer import AccessDecision, Ask, Asker, ResourceCheck
from podling.apiserver.cel.evaluation import (
    CONDITIONS_BUDGET,
    OUT_OF_BUDGET,
    Cut,
    Evaluated,
    Program,
    program,
)
from podling.apiserver.cel.values import CelError, Meter
from podling.apiserver.request.request import RequestInfo, User
from podling.model.codec import json
from podling.model.types.admissionregistration import MatchCondition, Variable
from podling.model.types.core import Namespace
from podling.process.waits import SHORT, aside

T = TypeVar("T")
SPACE = "\t\n\v\f\r \u0085\u00a0\u2028\u2029\u3000"
NOT_SHOWN = ("managedFields", "ownerReferences", "selfLink")
"""What is not told of the namespace."""


class BudgetError(Exception):
    """Expressions together cost more than they may; the rest is not evaluated."""

    def __init__(self) -> None:
        super().__init__(OUT_OF_BUDGET)


class Met(NamedTuple):
    """`all`: no condition is false. `errors`: of those that have no value, if none is false."""

    all: bool
    errors: Sequence[str] = ()

    @property
    def error(self) -> str:
        """As Kubernetes tells several."""
        return self.errors[0] if len(self.errors) == 1 else f"[{', '.join(self.errors)}]"


def asked(may: May) -> Ask:
    """The authorizers, as expressions ask them."""

    def ask(user: User, info: RequestInfo) -> AccessDecision:
        opinion = may(user, info)
        return AccessDecision(opinion.decision is Decision.ALLOW, opinion.reason)

    return ask


def names_of(
    attributes: Attributes, form: Form, new: Any, old: Any, namespace: Namespace | None, ask: Ask
) -> dict[str, Any]:
    """The variables of expressions about a write in a form. `namespace`: that of the object."""
    authorizer = Asker(attributes.user, ask)
    resource = attributes.resource
    return {
        "object": attributes.data(new, form),
        "oldObject": attributes.data(old, form),
        "request": request_of(attributes, form),
        "params": None,
        "namespaceObject": _shown_namespace(namespace),
        "authorizer": authorizer,
        "authorizer.requestResource": ResourceCheck(
            authorizer,
            resource.group,
            resource.plural,
            attributes.subresource,
            attributes.namespace,
            attributes.name,
        ),
    }


def request_of(attributes: Attributes, form: Form) -> dict[str, Any]:
    """The AdmissionRequest without its objects, as expressions see it."""
    own, user = attributes.sent.forms[0], attributes.user
    options = attributes.sent.options
    told = {
        "subResource": attributes.subresource,
        "requestSubResource": attributes.subresource,
        "name": attributes.name,
        "namespace": attributes.name if is_namespace(attributes) else attributes.namespace,
    }
    who = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra},
    }
    return {
        "uid": "",
        "kind": _kind(form),
        "resource": _resource(form),
        "requestKind": _kind(own),
        "requestResource": _resource(own),
        **{key: value for key, value in told.items() if value},
        "operation": attributes.operation,
        "userInfo": {key: value for key, value in who.items() if value},
        "object": None,
        "oldObject": None,
        "dryRun": attributes.dry_run,
        "options": None if options is None else dict(options),
    }


def _kind(form: Form) -> dict[str, str]:
    group, _, version = form.api_version.rpartition("/")
    return {"group": group, "version": version, "kind": form.kind}


def _resource(form: Form) -> dict[str, str]:
    return {"group": form.group, "version": form.version, "resource": form.plural}


def _shown_namespace(namespace: Namespace | None) -> Any:
    if namespace is None:
        return None
    data = json.decode_data(json.encode(namespace))
    for name in NOT_SHOWN:
        data["metadata"].pop(name, None)
    return {name: data[name] for name in ("metadata", "spec", "status") if name in data}


class Variables:
    """The variable `variables`: each is evaluated when it is first read, once."""

    cel_type = "kubernetes.variables"

    def __init__(self, listed: Iterable[Variable], names: Mapping[str, Any], *, quick: bool) -> None:
        self._expressions = {one.name: one.expression for one in listed}
        self._programs: dict[str, Program] = {}
        self._names = {**names, "variables": self}
        self._known: dict[str, Evaluated] = {}
        self._quick = quick
        self.cost = 0
        """Of those that were read."""

    @property
    def names(self) -> Mapping[str, Any]:
        """The other variables, and this one."""
        return self._names

    def program(self, expression: str, before: str = "") -> Program:
        """Of an expression that may name those `before` one, or all: what calls cost depends on types."""
        if "variables" not in expression:
            return program(expression)
        known = takewhile(lambda name: name != before, self._expressions)
        return program(
            expression, tuple((name, self._program(name).type) for name in known if name in expression)
        )

    def _program(self, name: str) -> Program:
        if name not in self._programs:
            self._programs[name] = self.program(self._expressions[name], name)
        return self._programs[name]

    def has(self, name: str) -> bool:
        return name in self._expressions

    def select(self, meter: Meter, name: str) -> Any:
        """Raises CelError, Cut."""
        if name not in self._known:
            if name not in self._expressions:
                raise CelError(f"no such key: {name}")
            told = self._program(name).evaluated(self._names, quick=self._quick)
            self._known[name] = told
            self.cost += told.cost
        told = self._known[name]
        if told.error:
            raise CelError(f'composited variable "{name}" fails to evaluate: {told.error}')
        return told.value


class Allowance:
    """What a number of expressions may still cost together."""

    def __init__(self, left: int, variables: Variables) -> None:
        self.left = left
        self._variables = variables

    def evaluated(self, expression: str, *, quick: bool) -> Evaluated:
        """Raises BudgetError, Cut."""
        before = self._variables.cost
        told = self._variables.program(expression).evaluated(self._variables.names, quick=quick)
        self.left -= told.cost + self._variables.cost - before
        if self.left < 0:
            raise BudgetError
        if not told.error:
            return told
        return Evaluated(None, f"expression '{expression}' resulted in error: {told.error}", told.cost)


async def evaluated(size: int, work: Callable[[bool], T]) -> T:
    """What `work` says. It is told whether it is on the loop, where it may raise Cut; then it is begun again
    beside it. `size`: of the expressions, in characters; those that are long take long to compile."""
    if size <= SHORT // 16:
        try:
            return await settled(lambda: work(True))
        except Cut:
            pass
    # The thread is to see the answers of webhooks that are there for this task.
    return await settled_later(lambda: aside(SHORT + 1, copy_context().run, work, False))


async def conditions_met(conditions: Sequence[MatchCondition], names: Mapping[str, Any]) -> Met:
    """Whether a write is what a webhook or a policy is about."""
    if not conditions:
        return Met(all=True)
    size = sum(len(one.expression) for one in conditions)
    return await evaluated(size, lambda quick: _met(conditions, names, quick=quick))


def _met(conditions: Sequence[MatchCondition], names: Mapping[str, Any], *, quick: bool) -> Met:
    budget = Allowance(CONDITIONS_BUDGET, Variables((), names, quick=quick))
    try:
        told = list(_values(budget, (one.expression for one in conditions), quick=quick))
    except BudgetError as error:
        return Met(False, [str(error)])
    if any(not one.error and one.value is False for one in told):
        return Met(all=False)
    errors = [one.error for one in told if one.error]
    return Met(not errors, errors)


def _values(budget: Allowance, expressions: Iterable[str], *, quick: bool) -> Iterator[Evaluated]:
    for expression in expressions:
        yield budget.evaluated(expression, quick=quick)
