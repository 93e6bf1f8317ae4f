"""The Node object and its lease, and what all pods of the node share."""
