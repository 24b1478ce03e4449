"""What loaders are made of."""
