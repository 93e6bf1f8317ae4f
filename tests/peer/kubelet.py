"""A kubelet in place of one: it answers both servers the same when they ask for a log."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from podling.machine.pki import Authority

LOG = b"first line\nsecond line\n\xff\xfe no text\n"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(LOG)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def answering(directory: Path) -> Iterator[int]:
    """Its port on loopback."""
    serving = Authority(directory, datetime.now(UTC)).server("kubelet", "kubelet", ["127.0.0.1"])
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(serving.certificate, serving.key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
