"""A private containerd: its configuration and its process."""
