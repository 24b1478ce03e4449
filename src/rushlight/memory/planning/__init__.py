"""What a step would cost in bytes and seconds in several ways, and which to choose."""
