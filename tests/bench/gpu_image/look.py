"""Print the content of the image with CUDA as one line of JSON; runs inside it, without a GPU."""

import ctypes
import json
import mmap
import platform
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

LOADED = (
    "libcudart.so.12",
    "libcublas.so.12",
    "libcublasLt.so.12",
    "libcudnn.so.9",
    "libcufft.so.11",
    "libcupti.so.12",
    "libcusolver.so.11",
    "libcusparse.so.12",
    "libnccl.so.2",
)
"""Libraries that TensorFlow with CUDA 12 loads if it finds a GPU. The driver's libcuda is mounted with the GPU."""
NEEDED = ("libnvJitLink.so.12", "libnvrtc.so.12")
"""Libraries that these load."""
PROGRAMS = ("ptxas",)
"""Programs that XLA calls."""
PARTS = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")


def loaded(library: str, folder: Path) -> str:
    """Return the path of a library if it can be loaded with its dependencies; else the reason."""
    found = next(folder.glob(f"*/lib/{library}"), None)
    if found is None:
        return "missing"
    try:
        ctypes.CDLL(str(found))
    except OSError as error:
        return f"cannot be loaded: {error}"
    return str(found)


def searched(part: Path, folders: set[str]) -> set[str]:
    """Return those of the folders in which a part of TensorFlow searches for libraries: they are in its run path."""
    with part.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return {name for name in folders if content.find(f"/nvidia/{name}/lib".encode()) >= 0}


def main() -> None:
    import tensorflow as tf

    site = Path(sysconfig.get_paths()["purelib"])
    build = tf.sysconfig.get_build_info()
    libraries = {name: loaded(name, site / "nvidia") for name in (*LOADED, *NEEDED)}
    folders = {name: Path(libraries[name]).parent.parent.name for name in LOADED if libraries[name].startswith("/")}
    known = set().union(*(searched(site / "tensorflow" / part, set(folders.values())) for part in PARTS))
    found = {
        "tensorflow": tf.__version__,
        "python": platform.python_version(),
        "build": {name: build.get(name) for name in ("is_cuda_build", "cuda_version", "cudnn_version")},
        "packages": {name: metadata.version(name) for name in sys.argv[1:]},
        "libraries": libraries,
        "not_searched": sorted(name for name, folder in folders.items() if folder not in known),
        "no_programs": [name for name in PROGRAMS if not list((site / "nvidia").glob(f"*/bin/{name}"))],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
