"""SelfSubjectReviews: who am I."""

from __future__ import annotations

from datetime import datetime

from podling.apiserver.judges import Judges
from podling.apiserver.registry.review import Review
from podling.apiserver.request import User
from podling.model.authentication import SelfSubjectReview, SelfSubjectReviewStatus, UserInfo
from podling.model.meta import ObjectMeta
from podling.model.scheme import resource_of
from podling.model.time import rfc3339


class SelfSubjectReviews(Review[SelfSubjectReview]):
    resource = resource_of(SelfSubjectReview)

    def answer(self, obj: SelfSubjectReview, asker: User, judges: Judges, now: datetime) -> None:
        """Of the question nothing comes back."""
        obj.metadata = ObjectMeta(creation_timestamp=rfc3339(now))
        obj.status = SelfSubjectReviewStatus(user_info=info_of(asker))


def info_of(user: User) -> UserInfo:
    return UserInfo(
        username=user.name,
        uid=user.uid,
        groups=list(user.groups),
        extra={key: list(values) for key, values in user.extra},
    )
