"""``torch.nested._internal``: what libraries import from there."""
