"""What memory is in use: bytes now and at the peak, and who holds them."""
