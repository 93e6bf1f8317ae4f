"""One podling on one machine: its directories, certificates, containerd, network, and the checks of the
machine.
"""
