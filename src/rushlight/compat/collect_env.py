"""``torch.utils.collect_env``: what a report of a bug says of this machine, of which rushlight is what runs.

Nothing is asked of CUDA, ROCm or conda: what is not looked for says so.
"""

from __future__ import annotations

import importlib.metadata
import platform
import re
import subprocess
import sys
from typing import NamedTuple

from rushlight import cpu
from rushlight.compat.torch_version import PYTORCH
from rushlight.version import __version__

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "pretty_str"]

UNKNOWN, NONE = "Could not collect", "N/A"
# Distributions that a report names, by the beginnings or ends of their names.
NAMED = re.compile(r"(numpy|ml_dtypes|mypy|scipy|torch|rushlight|optree|safetensors).*|.*torch", re.IGNORECASE)


class SystemEnv(NamedTuple):
    """What is known of a machine, in PyTorch's fields."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cuda_runtime_version: str
    cuda_module_loading: str
    nvidia_driver_version: str
    nvidia_gpu_models: str
    cudnn_version: str
    is_xpu_available: str
    pip_version: str
    pip_packages: str
    conda_packages: str
    hip_compiled_version: str
    hip_runtime_version: str
    miopen_runtime_version: str
    caching_allocator_config: str
    is_xnnpack_available: str
    cpu_info: str


def _first_line(*command: str) -> str | None:
    """The first line that a program prints; None where there is no such program, or it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.partition("\n")[0].strip() or None if done.returncode == 0 else None


def _after(word: str, line: str | None) -> str | None:
    return line if line is None else line.partition(word)[2].strip() or line


def _system() -> str:
    """The name of the system, as it says itself."""
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except (OSError, AttributeError):
        name = f"{platform.system()} {platform.release()}"
    return f"{name} ({platform.machine()})"


def _packages() -> str:
    """The installed distributions that matter here, in lines."""
    found = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions() if d.metadata["Name"]}
    return "\n".join(f"[pip3] {name}=={found[name]}" for name in sorted(found, key=str.lower) if NAMED.fullmatch(name))


def _processor() -> str:
    known = cpu.description()
    lines = {"Model name": known.get("model name", platform.processor() or platform.machine()), "CPU(s)": cpu.count(),
             "Flags": known.get("flags", UNKNOWN)}  # fmt: skip
    return "\n".join(f"{f'{name}:':<41}{value}" for name, value in lines.items())


def get_env_info() -> SystemEnv:
    """What is known of this machine, and of the rushlight that runs on it."""
    bits = 64 if sys.maxsize > 2**32 else 32
    return SystemEnv(
        torch_version=f"rushlight {__version__}, with the interface of PyTorch {PYTORCH}",
        is_debug_build="False",
        cuda_compiled_version="None",
        gcc_version=_after("gcc ", _first_line("gcc", "--version")),
        clang_version=_after("version ", _first_line("clang", "--version")),
        cmake_version=_after("cmake ", _first_line("cmake", "--version")),
        os=_system(),
        libc_version="-".join(platform.libc_ver()) if platform.libc_ver()[0] else NONE,
        python_version=f"{sys.version} ({bits}-bit runtime)".replace("\n", " "),
        python_platform=platform.platform(),
        is_cuda_available="False",
        cuda_runtime_version=NONE,
        cuda_module_loading=NONE,
        nvidia_driver_version=NONE,
        nvidia_gpu_models=NONE,
        cudnn_version=NONE,
        is_xpu_available="False",
        pip_version="pip3",
        pip_packages=_packages(),
        conda_packages="",
        hip_compiled_version=NONE,
        hip_runtime_version=NONE,
        miopen_runtime_version=NONE,
        caching_allocator_config=NONE,
        is_xnnpack_available="False",
        cpu_info=_processor(),
    )


_LINES = (
    ("PyTorch version", "torch_version"), ("Is debug build", "is_debug_build"),
    ("CUDA used to build PyTorch", "cuda_compiled_version"), ("ROCM used to build PyTorch", "hip_compiled_version"), ("", ""),
    ("OS", "os"), ("GCC version", "gcc_version"), ("Clang version", "clang_version"), ("CMake version", "cmake_version"),
    ("Libc version", "libc_version"), ("", ""), ("Python version", "python_version"), ("Python platform", "python_platform"),
    ("Is CUDA available", "is_cuda_available"), ("CUDA runtime version", "cuda_runtime_version"),
    ("CUDA_MODULE_LOADING set to", "cuda_module_loading"), ("GPU models and configuration", "nvidia_gpu_models"),
    ("Nvidia driver version", "nvidia_driver_version"), ("cuDNN version", "cudnn_version"),
    ("Is XPU available", "is_xpu_available"), ("HIP runtime version", "hip_runtime_version"),
    ("MIOpen runtime version", "miopen_runtime_version"), ("Is XNNPACK available", "is_xnnpack_available"),
    ("Caching allocator config", "caching_allocator_config"),
)  # fmt: skip


def pretty_str(envinfo: SystemEnv) -> str:
    """What is known, in lines that fit into a report."""
    known = envinfo._asdict()
    lines = [f"{label}: {known[field] or UNKNOWN}" if label else "" for label, field in _LINES]
    return "\n".join(
        [*lines, "", "CPU:", envinfo.cpu_info, "", "Versions of relevant libraries:", envinfo.pip_packages]
    )


def get_pretty_env_info() -> str:
    """What is known of this machine, in lines that fit into a report."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print what is known of this machine."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
