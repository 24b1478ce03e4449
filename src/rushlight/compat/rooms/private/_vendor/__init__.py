"""``torch._vendor``: small packages that PyTorch carries with it."""
