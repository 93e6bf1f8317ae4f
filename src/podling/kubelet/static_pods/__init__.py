"""Static pods: pods of files on the node, which run whatever the API server does, and their mirrors there."""
