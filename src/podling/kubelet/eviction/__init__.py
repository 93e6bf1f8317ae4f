"""Pods that take more than the node has to give go, before the node itself gives in (R-SYS-5)."""
