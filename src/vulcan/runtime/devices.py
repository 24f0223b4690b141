"""Where large arrays are computed: on the processor, or on a GPU of NVIDIA through CuPy.

CuPy is an optional dependency, imported on first use:

    pip install 'vulcan-planner[cuda]'

Code for a GPU takes its namespace of arrays from `open_arrays`. Tests give it numpy instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from vulcan.errors import OptionError
from vulcan.parameters import suggest

DEVICES: Final = ("cpu", "cuda")


def require_device(name: Any) -> None:
    """Reject a name that is no device."""
    if name not in DEVICES:
        known = " or ".join(map(repr, DEVICES))
        raise OptionError(f"device must be {known}, not {name!r}{suggest(str(name), DEVICES)}")


def open_arrays() -> Any:
    """Return CuPy, ready to use; if something is missing, the error says what to do."""
    otherwise = "device='cpu' needs none of it"
    try:
        import cupy
    except ImportError as error:
        raise OptionError(
            "device='cuda' needs CuPy, which is not installed or cannot be loaded "
            f"({error}): pip install 'vulcan-planner[cuda]'; {otherwise}"
        ) from error
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
        if count:
            cupy.zeros(1)
    except Exception as error:  # CuPy has errors of its own for each library that is missing
        raise OptionError(
            f"device='cuda' needs a GPU of NVIDIA with its driver ({error}); {otherwise}"
        ) from error
    if not count:
        raise OptionError(f"device='cuda' needs a GPU of NVIDIA, and there is none; {otherwise}")
    return cupy


def is_gpu(arrays: Any) -> bool:
    """Whether a namespace of arrays is that of a GPU."""
    return bool(arrays.__name__ == "cupy")


@contextmanager
def explain_memory(arrays: Any, what: str) -> Iterator[None]:
    """Turn an error about the memory of the GPU into one that says what to do."""
    try:
        yield
    except Exception as error:
        if "OutOfMemory" not in type(error).__name__ and not isinstance(error, MemoryError):
            raise
        size = ""
        if is_gpu(arrays):
            free, total = arrays.cuda.runtime.memGetInfo()
            size = f": {free / 1e9:.1f} of {total / 1e9:.1f} GB are free"
        raise OptionError(
            f"the memory of the GPU is too small for {what}{size}; use device='cpu', or a smaller "
            "horizon or model"
        ) from error


def to_host(array: Any) -> Any:
    """Return an array of a device as one of numpy; None for None."""
    return array.get() if hasattr(array, "get") else array
