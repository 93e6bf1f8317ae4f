"""RFC 6455 and the Kubernetes channel subprotocols: bytes in, events out."""
