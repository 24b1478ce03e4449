"""Functions that make tensors: of given size, from Python's and NumPy's data, like another tensor, on given memory."""
