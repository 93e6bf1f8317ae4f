"""What pods and the node use. Everything is read when a client asks; nothing is collected in between."""
