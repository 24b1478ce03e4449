"""``torch.utils.cpp_extension``: compiled code made for PyTorch's tensors has nothing to work on here."""

from rushlight import absent

CUDA_HOME = CUDNN_HOME = ROCM_HOME = SYCL_HOME = None
IS_WINDOWS = IS_MACOS = False
IS_LINUX = True
absent.names(
    globals(),
    "code compiled against PyTorch's C++ interface cannot run on rushlight's tensors: torch.library.custom_op takes one "
    "written in Python, on NumPy's arrays or with ctypes",
    "BuildExtension",
    "CUDAExtension CppExtension SyclExtension check_compiler_is_gcc check_compiler_ok_for_platform "
    "get_cxx_compiler get_default_build_root include_paths is_ninja_available library_paths load load_inline verify_ninja_availability",
)
