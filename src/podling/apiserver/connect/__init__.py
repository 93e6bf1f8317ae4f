"""Connections passed on to kubelets, pods and services: exec, attach, port-forward, logs, proxy."""
