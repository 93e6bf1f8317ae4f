"""Upgraded HTTP connections (SPDY, WebSocket): parsers that take bytes and return events, and the driver of
sockets.
"""
