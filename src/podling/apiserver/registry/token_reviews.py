"""TokenReviews: whose token this is."""

from __future__ import annotations

from podling.apiserver.judges import Judges
from podling.apiserver.registry.field import required
from podling.apiserver.registry.review import Review
from podling.apiserver.registry.self_subject_reviews import info_of
from podling.apiserver.request import User
from podling.model.authentication import TokenReview, TokenReviewStatus
from podling.model.errors import Cause
from podling.model.scheme import resource_of


class TokenReviews(Review[TokenReview]):
    resource = resource_of(TokenReview)

    def validate(self, obj: TokenReview) -> list[Cause]:
        return [] if obj.spec.token else [required("spec.token", "token is required for TokenReview")]

    def answer(self, obj: TokenReview, asker: User, judges: Judges) -> None:
        owner = judges.owner_of(obj.spec.token, obj.spec.audiences)
        if owner is None:
            obj.status = TokenReviewStatus(error="invalid bearer token")
        else:
            obj.status = TokenReviewStatus(
                authenticated=True, user=info_of(owner.user), audiences=list(owner.audiences)
            )
