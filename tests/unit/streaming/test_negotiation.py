"""Which protocol an upgrade gets, and how it is refused."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict

from podling.streaming.negotiation import Accepted, Unacceptable, negotiate

SPDY = ("v4.channel.k8s.io", "v3.channel.k8s.io")
WEBSOCKET = ("v5.channel.k8s.io", "v4.channel.k8s.io", "")
KEY = {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}


def headers(*pairs: tuple[str, str], **more: str) -> CIMultiDict[str]:
    return CIMultiDict([*pairs, *((name.replace("_", "-"), value) for name, value in more.items())])


def asked(upgrade: str, **more: str) -> CIMultiDict[str]:
    return headers(Connection="Upgrade", Upgrade=upgrade, **more)


def agreed(request: CIMultiDict[str]) -> Accepted:
    return negotiate(request, spdy=SPDY, websocket=WEBSOCKET)


def refused(request: CIMultiDict[str], served: tuple[str, ...] = WEBSOCKET) -> Unacceptable:
    with pytest.raises(Unacceptable) as error:
        negotiate(request, spdy=SPDY, websocket=served)
    return error.value


def test_the_clients_first_choice_that_is_served_wins() -> None:
    request = asked("SPDY/3.1")
    for version in ("v9.channel.k8s.io", "v3.channel.k8s.io", "v4.channel.k8s.io"):
        request.add("X-Stream-Protocol-Version", version)
    accepted = agreed(request)
    assert (accepted.protocol, accepted.websocket) == ("v3.channel.k8s.io", False)
    assert accepted.headers["Upgrade"] == "SPDY/3.1"


def test_subprotocols_may_be_listed_on_one_line() -> None:
    offered = {"Sec-WebSocket-Protocol": "v9.channel.k8s.io, v4.channel.k8s.io"}
    accepted = agreed(asked("websocket", **KEY, **offered))
    assert (accepted.protocol, accepted.websocket) == ("v4.channel.k8s.io", True)
    assert accepted.headers["Sec-WebSocket-Accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def test_a_websocket_that_names_no_subprotocol_gets_the_unnamed_one() -> None:
    accepted = agreed(headers(Connection="keep-alive, Upgrade", Upgrade="WebSocket", **KEY))
    assert accepted.protocol == ""
    assert "Sec-WebSocket-Protocol" not in accepted.headers


def test_spdy_protocols_that_are_not_served_are_refused_with_those_that_are() -> None:
    error = refused(asked("SPDY/3.1", X_Stream_Protocol_Version="v9.channel.k8s.io"))
    assert error.status == 403
    assert error.message == (
        "unable to upgrade: unable to negotiate protocol: client supports [v9.channel.k8s.io], "
        "server accepts [v4.channel.k8s.io v3.channel.k8s.io]"
    )
    assert [value for _, value in error.headers] == list(SPDY)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (headers(), "missing upgrade headers"),
        (headers(Upgrade="websocket", **KEY), "missing upgrade headers"),
        (headers(Connection="Upgrade"), "missing upgrade headers"),
        (asked("h2c"), "missing upgrade headers"),
        (asked("SPDY/3.1"), "X-Stream-Protocol-Version is required"),
        (asked("websocket"), "not a WebSocket"),
        (asked("websocket", Sec_WebSocket_Protocol="nonsense", **KEY), "unsupported WebSocket subprotocols"),
    ],
)
def test_what_is_no_upgrade_is_refused(request_: CIMultiDict[str], why: str) -> None:
    error = refused(request_)
    assert error.status == 400
    assert why in error.message


def test_no_subprotocol_is_refused_where_one_is_needed() -> None:
    assert refused(asked("websocket", **KEY), served=("v5.channel.k8s.io",)).status == 400
