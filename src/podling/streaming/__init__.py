"""Upgraded connections: codecs that take bytes and return events, and the one driver of sockets."""
