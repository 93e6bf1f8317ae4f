"""The container runtime: the protocol, a client of any CRI v1 socket, a private containerd, an in-memory runtime."""
