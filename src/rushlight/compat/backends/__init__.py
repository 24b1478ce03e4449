"""``torch.backends``: questions about the libraries beneath are answered, settings are accepted.

The settings of cuDNN and CUDA change nothing on the CPU.  What rushlight itself computes with is in
``rushlight.backends``, and ``rushlight doctor`` prints it.
"""

from rushlight.compat.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
