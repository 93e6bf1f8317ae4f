"""Keys that live equally long share a lease, as with kube-apiserver: 60 s or a twentieth, and 1,000 keys."""

from __future__ import annotations

import pytest

from podling.storage.etcd.leases import MOST_KEYS, Leases

HOUR = 3600


class Etcd:
    """Its time, and the leases that it granted."""

    def __init__(self) -> None:
        self.time = 100.0
        self.granted: list[int] = []

    async def grant(self, seconds: int) -> int:
        self.granted.append(seconds)
        return len(self.granted)

    def leases(self) -> Leases:
        return Leases(self.grant, lambda: self.time)


async def test_a_key_that_lives_for_ever_has_no_lease() -> None:
    etcd = Etcd()
    assert await etcd.leases().lease(0) == 0
    assert etcd.granted == []


@pytest.mark.parametrize(("ttl", "reused"), [(HOUR, 60), (600, 30), (100, 5)])
async def test_a_lease_takes_keys_for_a_while_and_lasts_so_much_longer(ttl: int, reused: int) -> None:
    etcd = Etcd()
    leases = etcd.leases()
    assert await leases.lease(ttl) == 1
    etcd.time += reused - 0.1
    assert await leases.lease(ttl) == 1
    etcd.time += 0.1
    assert await leases.lease(ttl) == 2
    assert etcd.granted == [ttl + reused] * 2


async def test_a_short_lease_is_for_one_key() -> None:
    etcd = Etcd()
    leases = etcd.leases()
    assert [await leases.lease(15), await leases.lease(15)] == [1, 2]
    assert etcd.granted == [15, 15]


async def test_a_lease_takes_a_thousand_keys() -> None:
    etcd = Etcd()
    leases = etcd.leases()
    given = [await leases.lease(HOUR) for _ in range(2 * MOST_KEYS + 1)]
    assert [given.count(one) for one in (1, 2, 3)] == [MOST_KEYS, MOST_KEYS, 1]


async def test_lengths_have_leases_of_their_own_and_forgotten_ones_are_not_used() -> None:
    etcd = Etcd()
    leases = etcd.leases()
    assert [await leases.lease(HOUR), await leases.lease(600), await leases.lease(HOUR)] == [1, 2, 1]
    leases.forget()
    assert await leases.lease(HOUR) == 3
