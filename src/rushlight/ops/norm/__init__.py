"""Normalisations: by layer, batch and group, and softmax."""
