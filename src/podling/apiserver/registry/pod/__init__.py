"""What a pod as a whole must be, may become, and shows."""
