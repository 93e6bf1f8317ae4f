"""Storage: claims and volumes brought together, and claims that pods bring with them."""
