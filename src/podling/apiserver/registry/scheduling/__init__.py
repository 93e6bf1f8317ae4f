"""What a pod may say about where it runs."""
