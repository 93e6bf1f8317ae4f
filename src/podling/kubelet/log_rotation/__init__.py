"""Container logs that grow too long are begun anew, and the older parts kept for a while."""
