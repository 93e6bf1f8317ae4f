"""The node itself: what it reports of its machine, that it is alive, and what all pods on it share."""
