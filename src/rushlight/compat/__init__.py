"""What lets PyTorch's scripts run unmodified: the names under which they look for things.

``imports`` resolves ``import torch`` and ``import torchvision`` to this package, ``devices`` says what becomes of
``.cuda()`` where there is no GPU, ``missing`` words the errors for what is not there.
"""
