"""Optimizers that keep less than one number, or less than 32 bits of it, for every element of a parameter."""
