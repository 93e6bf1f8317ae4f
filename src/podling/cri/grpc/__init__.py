"""CRI over gRPC: messages, connection, client, and the sources of events."""
