"""What pods and the node use: read when somebody asks, never kept up by itself."""
