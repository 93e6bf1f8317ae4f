"""The handshake's key; the rest of RFC 6455 is proven through the wires."""

from podling.streaming.websocket.frames import accept_key


def test_the_accept_key_is_that_of_rfc_6455() -> None:
    """The example of RFC 6455, section 1.3."""
    assert accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
