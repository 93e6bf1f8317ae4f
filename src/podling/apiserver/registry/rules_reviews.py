"""SelfSubjectRulesReviews: all that I may do in a namespace.

Who may do anything is told so. Rules can be listed once an authorizer has some: until then the answer to
anybody else is incomplete.
"""

from __future__ import annotations

from datetime import datetime

from podling.apiserver.authz.authorizer import Decision
from podling.apiserver.judges import Judges
from podling.apiserver.registry.review import Review
from podling.apiserver.request import RequestInfo, User
from podling.model.authorization import (
    NonResourceRule,
    ResourceRule,
    SelfSubjectRulesReview,
    SubjectRulesReviewStatus,
)
from podling.model.errors import bad_request
from podling.model.scheme import resource_of

ANY = "*"
ANYTHING = SubjectRulesReviewStatus(
    resource_rules=[ResourceRule(verbs=[ANY], api_groups=[ANY], resources=[ANY])],
    non_resource_rules=[NonResourceRule(verbs=[ANY], non_resource_urls=[ANY])],
)
UNKNOWN = SubjectRulesReviewStatus(incomplete=True, evaluation_error="no authorizer lists its rules")


class SelfSubjectRulesReviews(Review[SelfSubjectRulesReview]):
    resource = resource_of(SelfSubjectRulesReview)

    def answer(self, obj: SelfSubjectRulesReview, asker: User, judges: Judges, now: datetime) -> None:
        """Raises StatusError 400 when no namespace is named."""
        if not obj.spec.namespace:
            raise bad_request("no namespace on request")
        anything = RequestInfo(ANY, "", True, ANY, ANY, obj.spec.namespace, ANY)
        allowed = judges.may(asker, anything).decision is Decision.ALLOW
        obj.status = ANYTHING if allowed else UNKNOWN
