"""Who may ask the kubelet: what is asked of the API server, and for how long its answer holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from podling.kubelet.server.server import NodeAccess
from podling.model.types.authentication import TokenReview, UserInfo
from podling.model.types.authorization import SubjectAccessReview

PROMETHEUS = ("prometheus", ("monitoring",))


class Judge:
    """An API server that allows `system:monitoring` the metrics of nodes, and its clock."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.time = datetime(2026, 1, 2, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    async def create(self, review: SubjectAccessReview) -> SubjectAccessReview:
        what = review.spec.resource_attributes
        assert what and (what.resource, what.name) == ("nodes", "n1")
        self.asked.append((review.spec.user, what.verb, what.subresource))
        review.status.allowed = "monitoring" in review.spec.groups and what.subresource == "metrics"
        return review


def access(judge: Any) -> NodeAccess:
    return NodeAccess(judge, "n1", judge)


async def test_masters_are_never_asked_about() -> None:
    judge = Judge()
    assert await access(judge).allows("admin", ("system:masters",), "create", ("proxy",))
    assert judge.asked == []


async def test_any_of_the_subresources_will_do() -> None:
    judge = Judge()
    assert await access(judge).allows(*PROMETHEUS, "get", ("metrics", "proxy"))
    assert not await access(judge).allows(*PROMETHEUS, "get", ("log", "proxy"))
    assert judge.asked == [("prometheus", "get", sub) for sub in ("metrics", "log", "proxy")]


async def test_a_yes_holds_for_five_minutes_and_a_no_for_half_of_one() -> None:
    judge = Judge()
    kept = access(judge)
    for after, asked in ((0, 2), (29, 2), (1, 3), (269, 4), (1, 5)):
        judge.time += timedelta(seconds=after)
        assert await kept.allows(*PROMETHEUS, "get", ("metrics",))
        assert not await kept.allows(*PROMETHEUS, "create", ("proxy",))
        assert len(judge.asked) == asked, after


async def test_what_is_kept_is_limited() -> None:
    judge = Judge()
    kept = access(judge)
    for number in range(2_500):
        await kept.allows(f"user{number}", (), "get", ("proxy",))
    assert len(kept._answers) <= 1_000


class Registry(Judge):
    """An API server that knows one token."""

    async def create(self, review: Any) -> Any:
        assert isinstance(review, TokenReview)
        self.asked.append((review.spec.token[:9], "", ""))
        review.status.authenticated = review.spec.token == "good"
        if review.status.authenticated:
            review.status.user = UserInfo(username="prometheus", groups=["monitoring"])
        return review


async def test_whose_a_token_is_holds_for_two_minutes() -> None:
    registry = Registry()
    kept = access(registry)
    for after, asked in ((0, 2), (119, 2), (1, 4)):
        registry.time += timedelta(seconds=after)
        assert await kept.owner_of("good") == PROMETHEUS
        assert await kept.owner_of("bad") is None
        assert len(registry.asked) == asked, after


async def test_tokens_of_strangers_fill_nothing() -> None:
    kept = access(Registry())
    for number in range(1_200):
        await kept.owner_of(f"{number}{'x' * 10_000}")
    assert len(kept._owners) <= 1_000
    assert {len(key) for key in kept._owners} == {32}
