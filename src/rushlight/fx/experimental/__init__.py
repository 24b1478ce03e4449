"""Rooms of `torch.fx` that libraries look into when they are imported."""
