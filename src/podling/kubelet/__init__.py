"""What a node does for its pods: observe, plan (pure), apply."""
