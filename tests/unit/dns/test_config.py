"""What a ConfigMap as kube-dns reads it says of other servers, and what of it cannot be read."""

from __future__ import annotations

import pytest

from podling.dns.config import STUBS, UPSTREAM, configured
from podling.dns.forward import ForwardOptions
from podling.model.types.core import ConfigMap
from podling.model.types.meta import ObjectMeta

OPTIONS = ForwardOptions(servers=("192.0.2.1",), stubs={"a.test": ("192.0.2.2",), "b.test": ("192.0.2.3",)})


def config(**data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="kube-dns", namespace="kube-system"), data=data)


def test_it_stands_before_the_options() -> None:
    given = configured(
        OPTIONS,
        config(
            stubDomains='{"a.test": ["10.0.0.53", "[fd00::53]:5353"]}',
            upstreamNameservers='["192.0.2.53:5353"]',
        ),
    )
    assert given.servers == ["192.0.2.53:5353"]
    assert given.stubs == {"a.test": ["10.0.0.53", "[fd00::53]:5353"], "b.test": ("192.0.2.3",)}


def test_what_it_leaves_out_is_as_the_options_say() -> None:
    for given in (config(), config(stubDomains="", upstreamNameservers=" "), config(other="x")):
        assert configured(OPTIONS, given) == OPTIONS
    assert configured(OPTIONS, config(upstreamNameservers="[]")) == OPTIONS


@pytest.mark.parametrize(
    ("key", "text", "why"),
    [
        (STUBS, "{", "Input data was truncated"),
        (STUBS, '["10.0.0.1"]', "Expected `object`, got `array`"),
        (STUBS, '{"a.test": "10.0.0.1"}', "Expected `array`, got `str`"),
        (STUBS, '{"a.test": []}', "a.test has no servers"),
        (STUBS, '{"a.test": ["ns.a.test"]}', "'ns.a.test' is no ADDRESS or ADDRESS:PORT"),
        (STUBS, '{".": ["10.0.0.1"]}', "the root is no stub domain"),
        (STUBS, '{"%s.test": ["10.0.0.1"]}' % ("a" * 64), "a label has 1 to 63 bytes"),
        (UPSTREAM, '{"a": 1}', "Expected `array`, got `object`"),
        (UPSTREAM, '["10.0.0.1:0"]', "'10.0.0.1:0' has no port from 1 to 65535"),
        (UPSTREAM, '["10.0.0.1:65536"]', "no port from 1 to 65535"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_key(key: str, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{key} of the ConfigMap kube-system/kube-dns: ") as error:
        configured(OPTIONS, config(**{key: text}))
    assert why in str(error.value)
