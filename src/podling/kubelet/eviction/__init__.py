"""Node-pressure eviction: pods are ended before the node runs out of a resource (R-SYS-5)."""
