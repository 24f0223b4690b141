"""How kernels are compiled and cached.

Numba caches a compiled function by the time stamp of its own source file. A caller in one file
would go on using an old version of a callee in another, or the old value of a constant that it
froze. So the cache directory of a function is named after a digest of the Numba version, the file
that the function is in, and all files of the same package that this one imports, directly or not:
any change gives a new, empty one. What is trusted there is in `vulcan.kernels.cache`.

What makes these kernels as fast as C++ (measured on forward search, horizon 9, relative to the
yardstick: 2.7 without either, 2.2 with the first, 2.4 with the second, 1.0 with both):

- `part` forces LLVM to inline a function into its callers, so that no arrays are passed;
- `borrow` takes an array without counting references to it. Numba counts with atomic instructions
  wherever it cannot prove that they cancel, which in a search is in the innermost loop.
"""

from __future__ import annotations

import ast
import hashlib
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, cgutils
from numba.core import config as numba_config
from numba.extending import intrinsic

from vulcan.kernels.cache import SUFFIX, KernelFile, find_directory

__all__ = ["announce_compilation", "answer", "borrow", "kernel", "part", "routine"]

logger = logging.getLogger("vulcan")


@cache
def cache_directory(module: str) -> Path:
    """Return the directory that the compiled functions of a module are cached in."""
    digest = hashlib.sha256(numba.__version__.encode())
    for name, source in sorted(find_sources(module).items()):
        digest.update(name.encode() + source)
    return find_directory(f"kernels-{digest.hexdigest()[:16]}")


def find_sources(module: str) -> dict[str, bytes]:
    """Return the source of a module, and of all modules of its package that it depends on."""
    sources: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = None if name in sources else _find_file(name)
        if path is not None:
            sources[name] = path.read_bytes()
            waiting += _list_imports(name)
    return sources


@cache
def _list_imports(module: str) -> tuple[str, ...]:
    """Return what a module imports of its own package; names in modules are among them."""
    path = _find_file(module)
    assert path is not None
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    package = module.partition(".")[0]
    return tuple(name for name in found if name.partition(".")[0] == package)


@cache
def _find_file(module: str) -> Path | None:
    """Return the source file of a module; None if it is none, or its package has no files."""
    package, *parts = module.split(".")
    top = getattr(sys.modules.get(package), "__file__", None)
    if top is None:
        return None
    place = Path(top).parent.joinpath(*parts)
    candidates = (place.with_suffix(".py"), place / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


@contextmanager
def _own_cache(module: str) -> Iterator[None]:
    """Let Numba cache what is decorated here in our directory; a user's functions keep theirs."""
    library: Any = caching
    before = numba_config.CACHE_DIR, library.IndexDataCacheFile
    numba_config.CACHE_DIR = str(cache_directory(module))
    library.IndexDataCacheFile = KernelFile
    try:
        yield
    finally:
        numba_config.CACHE_DIR, library.IndexDataCacheFile = before


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, when it first does; cached on disk."""
    with _own_cache(function.__module__):
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)


def answer(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function of a compiled model, which kernels call by its address; cached on disk."""

    def decorate(function: Callable[..., Any]) -> Any:
        with _own_cache(function.__module__):
            return numba.cfunc(signature, cache=True, error_model="numpy")(function)

    return decorate


def routine(function: Callable[..., Any]) -> Any:
    """Compile a function that kernels call, and that is too long to be a part of each call."""
    return numba.njit(error_model="numpy")(function)


def part(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call, as a part of each of them."""
    return numba.njit(forceinline=True, error_model="numpy")(function)


@intrinsic
def borrow(typing_context: Any, array: Any) -> Any:
    """Return an array that no references are counted to; its owner must outlive the kernel."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), generate


def announce_compilation(function: Any) -> None:
    """Say so if a kernel has never been compiled on this machine; once in a process."""
    name = function.py_func.__name__
    directory = cache_directory(function.py_func.__module__)
    if not any(directory.rglob(f"*.{name}-*{SUFFIX}")):
        _announce()


@cache
def _announce() -> None:
    logger.warning("compiling the search kernels; this happens once and takes some seconds")
