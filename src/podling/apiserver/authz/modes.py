"""The authorizers that `--authorization-mode` or `--authorization-config` names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from podling.apiserver.authz.authorizers import (
    ALLOW,
    Authorizer,
    Decision,
    ListedRules,
    MastersAuthorizer,
    Opinion,
    opinion_of,
    rules_of,
)
from podling.apiserver.authz.configuration import Step, WebhookSettings
from podling.apiserver.authz.node import NodeAuthorizer, NodeGraph
from podling.apiserver.authz.rbac import RbacAuthorizer
from podling.apiserver.authz.webhook import WebhookAuthorizer
from podling.apiserver.request.request import RequestInfo, User
from podling.model.rules.authorization_modes import ALWAYS_ALLOW, ALWAYS_DENY, NODE, RBAC
from podling.model.types.rbac import PolicyRule

REFUSED = Opinion(Decision.NO_OPINION, "Everything is forbidden.")
EVERYTHING = ListedRules(
    [
        PolicyRule(verbs=["*"], api_groups=["*"], resources=["*"]),
        PolicyRule(verbs=["*"], non_resource_urls=["*"]),
    ],
    [],
)
FROM_THE_START = (NODE, RBAC)
"""What a server does without unless it begins with it."""
Choose = Callable[[Mapping[str, Authorizer]], Sequence[Authorizer]]
"""Of the server's own authorizers, and others, those that are asked, in their order."""


class AlwaysAllow:
    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        return ALLOW

    def rules_of(self, user: User, namespace: str) -> ListedRules:
        return EVERYTHING


class AlwaysDeny:
    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        return REFUSED


def own_authorizers(rbac: RbacAuthorizer, nodes: NodeGraph) -> Mapping[str, Authorizer]:
    """Those of the server itself, by their types."""
    return {
        NODE: NodeAuthorizer(nodes),
        RBAC: rbac,
        ALWAYS_ALLOW: AlwaysAllow(),
        ALWAYS_DENY: AlwaysDeny(),
    }


def by_modes(*modes: str) -> Choose:
    return lambda own: [own[mode] for mode in modes]


def authorizers_of(choose: Choose, rbac: RbacAuthorizer, nodes: NodeGraph) -> tuple[Authorizer, ...]:
    """In the order in which they are asked; `system:masters` may do anything, whatever they think."""
    return (MastersAuthorizer(), *choose(own_authorizers(rbac, nodes)))


class Counted:
    """An authorizer, and how often it has decided what."""

    def __init__(self, step: Step, authorizer: Authorizer) -> None:
        self.step = step
        self.decisions = {Decision.ALLOW: 0, Decision.DENY: 0, Decision.NO_OPINION: 0}
        self._authorizer = authorizer

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        """Raises Unanswered."""
        opinion = self._authorizer.authorize(user, info)
        self.decisions[opinion.decision] += 1
        return opinion

    def rules_of(self, user: User, namespace: str) -> ListedRules:
        return rules_of([self._authorizer], user, namespace)


class Chosen:
    """The authorizers that a configuration names, which may be exchanged for others. `webhook` makes one, and
    raises ValueError for settings that cannot be used; so does `put`, and then nothing is changed. As in
    Kubernetes the server's own authorizers that it began with stay, and Node and RBAC come with a start
    alone."""

    def __init__(
        self, steps: Sequence[Step], webhook: Callable[[WebhookSettings], WebhookAuthorizer]
    ) -> None:
        self._webhook = webhook
        self._own: Mapping[str, Authorizer] = {}
        self.webhooks: Mapping[WebhookSettings, WebhookAuthorizer] = {}
        self.authorizers: Sequence[Counted] = ()
        self._first = self._steps = steps
        self._webhooks_of(steps)
        self.reloads = {True: 0, False: 0}
        """How often the configuration changed for another, and for what could not be used."""
        self.digest = ""
        """Of the configuration, if it is a file's."""

    def choose(self, own: Mapping[str, Authorizer]) -> Sequence[Authorizer]:
        """To be called once, before anybody is asked. `own`: those of the server itself."""
        self._own = own
        self._put(self._steps)
        return (self,)

    def put(self, steps: Sequence[Step]) -> bool:
        """Whether they are others than before. Webhooks that stay what they were keep their answers, and all
        their counts."""
        if steps == self._steps:
            return False
        first, now = ({one.type for one in those if one.webhook is None} for those in (self._first, steps))
        if missing := sorted(first - now):
            raise ValueError(f"missing required types: [{' '.join(missing)}]")
        for type_ in FROM_THE_START:
            if type_ in now - first:
                why = "is not allowed if it was not enabled at initial server startup"
                raise ValueError(f"authorizer type {type_} {why}")
        self._put(steps)
        return True

    def _put(self, steps: Sequence[Step]) -> None:
        before = {one.step: one for one in self.authorizers}
        self._webhooks_of(steps)
        self._steps = steps
        self.authorizers = [before.get(one) or Counted(one, self._of(one)) for one in steps]

    def _webhooks_of(self, steps: Sequence[Step]) -> None:
        wanted = [one.webhook for one in steps if one.webhook is not None]
        self.webhooks = {one: self.webhooks.get(one) or self._webhook(one) for one in wanted}

    def _of(self, step: Step) -> Authorizer:
        return self._own[step.type] if step.webhook is None else self.webhooks[step.webhook]

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        """Raises Unanswered."""
        return opinion_of(self.authorizers, user, info)

    def rules_of(self, user: User, namespace: str) -> ListedRules:
        return rules_of(self.authorizers, user, namespace)
