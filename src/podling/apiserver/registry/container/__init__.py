"""What the containers of a pod must be: of all three lists."""
