"""authentication.k8s.io/v1: TokenReview and SelfSubjectReview. They are answered, never stored."""

from typing import ClassVar

from podling.model.codec.fields import Part, always
from podling.model.types.meta import KubeObject


class UserInfo(Part):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class TokenReviewSpec(Part):
    token: str = ""
    audiences: list[str] = []


class TokenReviewStatus(Part):
    authenticated: bool = False
    user: UserInfo = always(UserInfo)
    audiences: list[str] = []
    error: str = ""


class TokenReview(KubeObject):
    KIND: ClassVar[str] = "TokenReview"
    API_VERSION: ClassVar[str] = "authentication.k8s.io/v1"

    spec: TokenReviewSpec = always(TokenReviewSpec)
    status: TokenReviewStatus = always(TokenReviewStatus)


class SelfSubjectReviewStatus(Part):
    user_info: UserInfo = always(UserInfo)


class SelfSubjectReview(KubeObject):
    KIND: ClassVar[str] = "SelfSubjectReview"
    API_VERSION: ClassVar[str] = "authentication.k8s.io/v1"

    status: SelfSubjectReviewStatus = always(SelfSubjectReviewStatus)
