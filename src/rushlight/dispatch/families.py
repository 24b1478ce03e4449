"""Families of operators that vmap treats alike: declarations hold one (`batch=`), `transforms.batching` says how.

An elementwise operator needs none, for its inputs are broadcast. Any other without a family runs sample after sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rule = Callable[[Any], Any]


class Family:
    """Operators of one batching rule.  what: what they have in common."""

    __slots__ = ("rule", "what")

    def __init__(self, what: str):
        self.what = what
        self.rule: Rule | None = None

    def batched(self, rule: Rule) -> Rule:
        """Declare the rule.  Raises RuntimeError for a second one."""
        if self.rule is not None:
            raise RuntimeError(f"a second batching rule for: {self.what}")
        self.rule = rule
        return rule

    def __repr__(self) -> str:
        return f"<family: {self.what}>"


# Attention
attention = Family(
    "Samples are one leading dimension more. Dropout that is the same for all samples needs one at a time."
)

# Convolution
windowed = Family("Windows of images times a weight, plus a bias.")
input_gradient = Family("The adjoint of that in the images.")
weight_gradient = Family("The adjoint of that in the weight.")

# Gathering
index_select = Family("Slices at indices.")
index_select_adjoint = Family("Zeros to which slices are added.")
index_add = Family("Slices added.")
index_copy = Family("Slices put.")
index_fill = Family("Slices filled, which are named once however often an index repeats.")
take = Family("Elements at flat positions.")
take_adjoint = Family("Zeros to which elements are added at flat positions.")
put = Family("Elements put at flat positions.")
embedding = Family("Rows at indices: of one table, or of the tables of all samples, one below another.")
embedding_backward = Family("Rows added up by index.")
masked_select = Family("Elements where a mask is true, which must be the same for all samples.")
masked_put = Family("Zeros with elements where a mask is true.")
masked_scatter = Family(
    "Consecutive elements of a source where a mask is true: by the number of each among those of its sample."
)

# Indexing
index = Family("The elements at indices.")
index_zeros = Family("Zeros to which elements are added at indices.")
index_put = Family("Elements put, or added, at indices.")

# Linear
product = Family("The products that a contraction can stand for.")
outer = Family("All products of the elements of two vectors.")
labelled = Family("A contraction with one label more.")
stacks = Family("Products of stacks of matrices, which broadcast; a stack times one matrix is one product.")
linear = Family("input weight^T + bias.")
added = Family("beta input + alpha mat1 mat2.")
trilinear = Family("input1^T weight input2 by rows: two contractions.")
leading = Family("Operators on the last two dimensions, over any before them, which of several matrices broadcast.")
with_pivots = Family(
    "A factorisation, its pivots, which have a dimension less, and a right side: leading dimensions broadcast."
)
on_the_diagonal = Family("Matrices on a diagonal: each padded to the width of all, one below another.")
distances = Family("Distances of rows, over leading dimensions that broadcast.")

# Losses
pairs_of_elements = Family("Losses of pairs of elements.")
classes = Family("Losses of rows with targets among classes.")
classes_backward = Family("The adjoint of nll_loss.")

# Moves
shifted = Family(
    "Static arguments say by their names how they speak of dimensions: `dim`, `dims`, `size`, `shape`, `index`."
)
permuted = Family("The dimensions of each sample in another order.")
expanded = Family("Each sample broadcast.")
summed = Family("Each sample summed to a size.")
repeated = Family("Each sample several times along its dimensions.")
placed = Family("Where an extremum is; without `dim`, in the flat sample.")
greatest = Family("The greatest of all elements of each sample.")
least = Family("The least of all elements of each sample.")
middle = Family("The median of all elements of each sample.")
along_both = Family("Along a dimension of two inputs broadcast together.")
joined = Family(
    "Samples joined along a dimension; empty vectors, which join with anything, are left out as PyTorch does."
)
padded = Family("Zeros that begin with the elements of each sample.")

# Norms
by_rows = Family("Normalisation over the last dimensions.")
by_groups = Family("Normalisation over groups of channels.")
by_channels = Family("Normalisation by channel with statistics of the images of one sample.")
by_known_channels = Family("Normalisation by channel with statistics that are given.")

# Pointwise
targeted = Family("Pointwise, where the result has the shape of the first input, however many samples it has.")
filled = Family("A number for each sample, as far as its shape goes.")
masked = Family("A number, for all samples or one for each, where a mask is true.")

# Random
parametric = Family("Draws whose parameters are tensors.")
drawn = Family("Draws in the shape of the input: for all samples, or for one and the same in all.")

# Strided
strided = Family("A view by strides of each sample, where it lies in the memory of all.")
by_position = Family("Copies by positions in memory: samples lie far enough apart.")
complex_view = Family("Pairs in the last dimension, which must be neighbours in memory.")
cloned = Family("A copy of each sample in a memory format.")

# Windows
images = Family("Every input and result begins with the dimension of images.")
