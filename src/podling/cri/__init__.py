"""The container runtime: its interface, a client of any CRI v1 socket, a private containerd, and a runtime in
memory.
"""
