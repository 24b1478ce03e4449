"""Special functions of mathematics, element by element: the names of torch.special."""
