"""The build backend of the wheel: scikit-build-core's, with an nvcc from wheels where the machine has none.

Without an nvcc the device code cannot be built, and numsan would have no CUDA engine. A build that wants none says so:
pip install . --config-settings cmake.define.NUMSAN_CUDA=OFF
"""
import os
import shutil
import sysconfig
from pathlib import Path

from scikit_build_core import build as scikit
from scikit_build_core.build import (  # noqa: F401  # hooks that stay as they are
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_wheel,
)

# The compiler, its parts, the headers of the driver and of the runtime that its programs include, and those of NVTX.
NVCC = [f"{name}==13.0.88" for name in ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt")] + [
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cccl==13.0.85",
    "nvidia-nvtx==13.0.85",
]


def wants_cuda(settings):
    """Unless it was switched off, on the command line or for an existing build."""
    said = {key.removeprefix("cmake.define."): str(value).upper() for key, value in (settings or {}).items()}
    return said.get("NUMSAN_CUDA", "ON") not in ("OFF", "0", "FALSE", "NO") and "NUMSAN_BUILT" not in said


TOOLKIT = "/usr/local/cuda"


def machine_has_nvcc():
    """Where CMake looks for it, too."""
    folders = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")] + [TOOLKIT]
    return bool(shutil.which("nvcc")) or any(Path(folder, "bin/nvcc").exists() for folder in folders if folder)


def get_requires_for_build_wheel(config_settings=None):
    more = NVCC if wants_cuda(config_settings) and not machine_has_nvcc() else []
    return scikit.get_requires_for_build_wheel(config_settings) + more


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    if wants_cuda(config_settings) and not machine_has_nvcc():
        found = sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/cu*/bin/nvcc"))
        if found:
            os.environ["CUDA_HOME"] = str(found[-1].parent.parent)
    return scikit.build_wheel(wheel_directory, config_settings, metadata_directory)
