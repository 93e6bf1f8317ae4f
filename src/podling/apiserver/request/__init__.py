"""A request, what the steps of the pipeline find out about it, and its response."""
