"""TokenReviews: whose token this is."""

from __future__ import annotations

from datetime import datetime

from podling.apiserver.judges import Judges
from podling.apiserver.registry.review import Review
from podling.apiserver.registry.self_subject_reviews import info_of
from podling.apiserver.request import User
from podling.model.authentication import TokenReview, TokenReviewStatus
from podling.model.errors import bad_request
from podling.model.scheme import resource_of


class TokenReviews(Review[TokenReview]):
    resource = resource_of(TokenReview)

    def answer(self, obj: TokenReview, asker: User, judges: Judges, now: datetime) -> None:
        """Raises StatusError 400 when there is nothing to look at."""
        if not obj.spec.token:
            raise bad_request("token is required for TokenReview in authentication")
        owner = judges.owner_of(obj.spec.token, obj.spec.audiences)
        if owner is None:
            obj.status = TokenReviewStatus(error="invalid bearer token")
        else:
            obj.status = TokenReviewStatus(
                authenticated=True, user=info_of(owner.user), audiences=list(owner.audiences)
            )
