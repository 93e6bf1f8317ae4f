"""The HTTPS server, and the way in for clients of the same process."""
