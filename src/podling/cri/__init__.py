"""The container runtime: its promise, a client of any CRI v1 socket, a private containerd, one in memory."""
