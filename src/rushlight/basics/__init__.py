"""What everyone needs and nobody else owns: modes, dtypes, devices, sizes, trees, handles, events.  No tensor is known here."""
