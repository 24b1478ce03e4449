"""Numeric inner loops on raw arrays: a NumPy reference for each and, where a compiler is found, a native twin.

One function per kernel, the same for both; see the modules for shapes.  Nothing is compiled on import, but at
the first call that can use it.
"""

from rushlight.kernels.along import *
from rushlight.kernels.attention import *
from rushlight.kernels.blockwise import *
from rushlight.kernels.convolution import *
from rushlight.kernels.elementwise import *
from rushlight.kernels.fourier import *
from rushlight.kernels.gather import *
from rushlight.kernels.images.grid import *
from rushlight.kernels.images.maxima import *
from rushlight.kernels.images.padding import *
from rushlight.kernels.images.resample import *
from rushlight.kernels.linear.triangles import *
from rushlight.kernels.lists import *
from rushlight.kernels.losses.ctc import *
from rushlight.kernels.matrices import *
from rushlight.kernels.native.loader import get_num_threads as get_num_threads
from rushlight.kernels.native.loader import set_num_threads as set_num_threads
from rushlight.kernels.native.loader import status
from rushlight.kernels.norms import *
from rushlight.kernels.order import *
from rushlight.kernels.piecewise import *
from rushlight.kernels.pointwise.circular import *
from rushlight.kernels.pointwise.distances import *
from rushlight.kernels.pointwise.gates import *
from rushlight.kernels.pointwise.masks import *
from rushlight.kernels.pointwise.powers import *
from rushlight.kernels.pointwise.prelu import *
from rushlight.kernels.pointwise.two_variables import *
from rushlight.kernels.pointwise.units import *
from rushlight.kernels.pooling import *
from rushlight.kernels.recurrent import *
from rushlight.kernels.rows import *
from rushlight.kernels.rowwise import *
from rushlight.kernels.scans import *
from rushlight.kernels.special import *
from rushlight.kernels.steps import *
from rushlight.kernels.sums import *

native_status = status
