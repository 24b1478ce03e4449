"""What nodes keep instead of what they asked for: what makes it again, and memory that may be written over."""
