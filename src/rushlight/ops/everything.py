"""All families of operators: importing them declares the operators and attaches the methods of Tensor."""

from rushlight.dispatch import observed
from rushlight.ops.attention import attention, multihead
from rushlight.ops.conv import convolutions, grid, pooling, resample, unfold
from rushlight.ops.create import create, factories, interchange, legacy, like_new, memory
from rushlight.ops.elementwise import (
    activation,
    arith,
    clamp,
    compare,
    complexes,
    convert,
    divide,
    elu,
    fill,
    logic,
    power,
    quantize,
    quantize_watched,
    rectifier,
    recurrent,
    rounding,
    two_variables,
    unary,
)
from rushlight.ops.index import (
    embedding,
    embedding_bag,
    index_select,
    indexing,
    indexing_advanced,
    masked,
    scatter,
    scatter_reduce,
    scatter_slices,
    take,
)
from rushlight.ops.linear import (
    bilinear,
    cdist,
    cholesky,
    decompositions,
    distance,
    eigen,
    einsum,
    fourier,
    grouped,
    ldl,
    lowrank,
    lstsq,
    lu,
    made,
    matmul,
    matrix_functions,
    products,
    spectral,
    triangular,
)
from rushlight.ops.loss import (
    binary,
    cross_entropy,
    ctc,
    linear_cross_entropy,
    loss,
    loss_names,
    margins,
    unmade_logits,
)
from rushlight.ops.norm import batch_norm, normalization, softmax
from rushlight.ops.python import classes, layouts, mapping, operators, printing, protocols, removed
from rushlight.ops.random import dropout, random, random_fill
from rushlight.ops.reduce import (
    differences,
    extrema,
    histogram,
    norms,
    product,
    quantile,
    scan,
    sort,
    statistics,
    sums,
    unique,
)
from rushlight.ops.shape import (
    diagonal,
    join,
    moved_views,
    padding,
    rearrange,
    reshape,
    resize,
    splitting,
    stacking,
    strided,
    views,
    views_inplace,
)
from rushlight.ops.special import gamma, polynomials, special
