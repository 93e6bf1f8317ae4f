"""Which user sent a request, by client certificate or bearer token."""
