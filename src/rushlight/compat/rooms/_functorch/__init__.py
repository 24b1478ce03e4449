"""``torch._functorch``: what packages import of the inner parts of `torch.func`."""
