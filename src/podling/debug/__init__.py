"""What `podling debug` decides: which container to add with which rights, and what a pod waits for. Pure."""
