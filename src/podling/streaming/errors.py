"""What can go wrong with a stream, and whose fault it is."""

from __future__ import annotations


class ProtocolError(Exception):
    """The peer said something its protocol does not allow. The only error a codec raises, whatever the
    bytes.
    """


class Disconnected(ConnectionError):
    """The connection is gone; nothing more can be said on it."""
