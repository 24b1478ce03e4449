"""What PyTorch's tests, and those of libraries, take from `torch.testing._internal`: its test cases, as far as they fit here."""
