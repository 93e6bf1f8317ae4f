"""What commands do on a cluster, any Kubernetes: requests about pods, streams to their containers, and the
terminal at this end.
"""
