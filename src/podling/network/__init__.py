"""The network pods live in: CNI configuration."""
