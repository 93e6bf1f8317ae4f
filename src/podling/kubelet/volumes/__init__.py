"""One file a kind of volume: what is laid out on the node before a pod's containers start."""
