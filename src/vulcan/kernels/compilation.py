"""How kernels are compiled, and cached on disk.

Two measures make these kernels as fast as C++ (forward search with horizon 9 takes 2.7 times as
long as in C++ without either, 2.2 with the first, 2.4 with the second, 1.0 with both):

- `part` forces LLVM to inline a function into its callers, so that no arrays are passed;
- `borrow` takes an array without counting references to it. Numba counts with atomic instructions
  wherever it cannot prove that they cancel, which in a search is in the innermost loop.

**How long it takes.** By default Numba optimises each function that a kernel calls, turns it into
machine code and wraps it for Python, before all of it is linked into the kernel and optimised
again. Functions of kernels are only linked (`PartCompiler`), and compiled for types alone: Numba
would also compile them for each constant that is passed. Both halve the time. The first relies on
Numba's internals, so it is done with the versions that it was tried with (`LINKING`); with others
kernels are the same, but take longer to compile.

**Which file.** Numba caches a compiled function by the time stamp of its own source file. A caller
in one file would keep using an old version of a callee in another, or the old value of a constant.
So the cache directory of a function is named after a digest of the Numba version, whether indices
are checked (`NUMBA_BOUNDSCHECK`), the file of the function, and all files of the same package that
this one imports, directly or not: any change gives a new, empty directory, and a new version of
the package whose sources are the same finds what is compiled.

**What is trusted.** Numba reads compiled functions with pickle and runs them. So they are kept in a
directory that only this user can write to, or else in a temporary directory, shared with worker
processes and removed when the process ends. Each signature of a function has a file: a digest, and
the data. A damaged file is never unpickled: the function is compiled again. If the disk is full or
read-only, kernels run without being cached.
"""

from __future__ import annotations

import ast
import atexit
import hashlib
import logging
import os
import pickle
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numba
from llvmlite import ir
from numba import types
from numba.core import caching, cgutils
from numba.core import config as numba_config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.serialize import dumps
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic
from platformdirs import user_cache_path

VARIABLE: Final = "VULCAN_CACHE_DIR"  # the environment variable that sets the cache directory
PREFIX: Final = "vulcan-planner-"  # name prefix of temporary directories

SUFFIX: Final = ".nbc"
DIGEST_SIZE: Final = 32
LARGEST: Final = sys.float_info.max
LINKING: Final = (0, 62), (0, 68)  # versions of Numba, both included
OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH

logger = logging.getLogger("vulcan")
_warn_once = cache(logger.warning)


_kernels: Counter[str] = Counter()  # of each module


@contextmanager
def _own_cache(module: str, on_compile: Callable[[], None] | None = None) -> Iterator[None]:
    """Let Numba cache functions decorated inside in our directory; other functions keep theirs."""
    library: Any = caching
    before = numba_config.CACHE_DIR, library.IndexDataCacheFile
    numba_config.CACHE_DIR = str(cache_directory(module))
    library.IndexDataCacheFile = partial(KernelFile, on_compile=on_compile)
    try:
        yield
    finally:
        numba_config.CACHE_DIR, library.IndexDataCacheFile = before


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, at its first call; cached on disk."""
    _kernels[function.__module__] += 1
    with _own_cache(function.__module__, partial(_announce, function.__module__)):
        options: dict[str, Any] = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
        return _by_type(numba.njit(error_model="numpy", **options)(function))


def _announce(module: str) -> None:
    """Say, once for each module, what is compiled."""
    count = _kernels[module]
    _warn_once(
        "compiling %s, once per machine: %d search %s, about a second each",
        module,
        count,
        "kernel" if count == 1 else "kernels",
    )


def answer(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function of a compiled model, called by its address; cached on disk."""

    def decorate(function: Callable[..., Any]) -> Any:
        with _own_cache(function.__module__):
            return numba.cfunc(signature, cache=True, error_model="numpy")(function)

    return decorate


def routine(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call, too long to be inlined."""
    return _link(function)


def part(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call, inlined into each of them."""
    return _link(function, forceinline=True)


def _link(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function to be linked into kernels; Python can't call it."""
    if LINKING[0] <= numba.version_info.short <= LINKING[1]:
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        options["pipeline_class"] = PartCompiler
    return _by_type(numba.njit(error_model="numpy", **options)(function))


def _by_type(dispatcher: Any) -> Any:
    """Let kernels call a function by the types of its arguments, constants too."""
    compile_for = dispatcher.get_call_template
    dispatcher.get_call_template = lambda arguments, keywords: compile_for(
        tuple(map(types.unliteral, arguments)), keywords
    )
    return dispatcher


class PartLibrary(JITCodeLibrary):
    """Code of a function that is linked into kernels, and optimised there."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        """Leave this to the kernel."""

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Generates code without an address."""

    _name = "vulcan_part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        state.library._ensure_finalized()
        # Callers find the code by what Python would call: here a builtin that refuses arguments.
        state.cr = state.cr._replace(cfunc=object().__format__)
        state.targetctx.insert_user_function(state.cr.cfunc, state.cr.fndesc, [state.library])
        return True


class PartCompiler(CompilerBase):
    """Numba's compiler, for functions that are linked into kernels."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes, the one that generates code replaced."""
        manager = PassManager("part")
        for step, name in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            manager.add_pass(PartLowering if step is NativeLowering else step, name)
        manager.finalize()
        return [manager]


@intrinsic
def borrow(typing_context: Any, array: Any) -> Any:
    """Return an array, or a tuple of arrays, without counted references.

    The owner of the arrays must outlive the kernel.
    """

    def strip(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        is_tuple = isinstance(kind, types.BaseTuple)
        if is_tuple:
            members = zip(kind, cgutils.unpack_tuple(builder, value), strict=True)
            stripped = [strip(context, builder, *member) for member in members]
            return context.make_tuple(builder, kind, stripped)
        view = cgutils.create_struct_proxy(kind)(context, builder, value=value)
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return strip(context, builder, signature.args[0], arguments[0])

    return array(array), generate


@intrinsic
def look_up(typing_context: Any, address: Any, place: Any) -> Any:
    """Return a float of an array at an address, which must have that place."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.DoubleType().as_pointer())
        return builder.load(builder.gep(pointer, [arguments[1]]))

    return types.float64(types.uint64, types.int64), generate


@part
def scale_bins(low, high, count):
    """Return the number of bins per unit from low to high; 0 if the two are equal.

    A quotient that overflows is replaced by the largest float, which uses fewer bins.
    """
    return min(count / (high - low), LARGEST) if high > low else 0.0


@part
def find_bin(place, last):
    """Return the index of a place as an integer, clamped to 0 ... last; 0 for NaN.

    `int` of a NaN, or of a number beyond 64 bits, is undefined in machine code, and an index from
    it could write anywhere. So this computes every index that comes from a float.
    """
    if place >= last:
        return last
    return int(place) if place > 0.0 else 0


@cache
def cache_directory(module: str) -> Path:
    """Return the cache directory of the compiled functions of a module."""
    checked = bool(numba_config.BOUNDSCHECK)  # Numba's own keys leave it out
    digest = hashlib.sha256(f"{numba.__version__} {checked}".encode())
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
    """Return what a module imports from its own package, modules and names alike."""
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
    """Return the source file of a module; None if there is none."""
    package, *parts = module.split(".")
    top = getattr(sys.modules.get(package), "__file__", None)
    if top is None:
        return None
    place = Path(top).parent.joinpath(*parts)
    candidates = (place.with_suffix(".py"), place / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def find_directory(name: str) -> Path:
    """Return a directory of the cache, created if needed, or a temporary one.

    The user's id is part of its name, so that several users may share the base directory.
    """
    chosen = os.environ.get(VARIABLE)
    base = Path(chosen) if chosen else user_cache_path("vulcan-planner")
    own = f"{name}-{os.geteuid()}" if hasattr(os, "geteuid") else name
    directory = base / own
    try:
        base.mkdir(parents=True, exist_ok=True)
        _require_guarded(base)
        directory.mkdir(mode=0o700, exist_ok=True)
        _require_own(directory)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        directory = _make_temporary_directory(str(base), error.strerror or str(error)) / own
        directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def _require_guarded(base: Path) -> None:
    """Refuse a base directory in which other users could replace ours."""
    found = base.stat()
    if found.st_mode & stat.S_ISVTX or not hasattr(os, "geteuid"):
        return
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & stat.S_IWOTH:
        raise PermissionError(0, "others may write there")


def _require_own(directory: Path) -> None:
    """Refuse a directory that other users could have written to."""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(0, f"{directory.name} is not a directory")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise PermissionError(0, f"{directory.name} belongs to another user")
    if os.name == "posix" and found.st_mode & OTHERS_WRITE:
        raise PermissionError(0, f"others may write to {directory.name}")


@cache
def _make_temporary_directory(instead_of: str, reason: str) -> Path:
    """Create a private directory for this process and its workers."""
    logger.warning(
        "%s can't be used as a cache (%s), so kernels are compiled anew in each process; "
        "set %s to another directory",
        instead_of,
        reason,
        VARIABLE,
    )
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.environ[VARIABLE] = str(directory)
    return directory


class KernelFile:
    """The compiled forms of a function, each in a file with a digest; it replaces Numba's class.

    Files with another stamp of the source are ignored. `on_compile` is called if the function was
    never compiled for a signature.
    """

    def __init__(
        self,
        cache_path: str,
        filename_base: str,
        source_stamp: Any,
        on_compile: Callable[[], None] | None = None,
    ) -> None:
        self._directory, self._base = Path(cache_path), filename_base
        self._stamp, self._on_compile = source_stamp, on_compile

    def load(self, key: Any) -> Any:
        """Return the compiled form for a signature; None if there is none or it is damaged."""
        path = self._find(key)
        try:
            content = path.read_bytes()
        except OSError:
            if self._on_compile is not None:
                self._on_compile()
            return None
        digest, data = content[:DIGEST_SIZE], content[DIGEST_SIZE:]
        if _digest(data) != digest:
            logger.warning("%s is damaged, so this kernel is compiled again", path)
            return None
        stamp, known, compiled = pickle.loads(data)  # noqa: S301 - only this user writes there
        return compiled if (stamp, known) == (self._stamp, key) else None

    def save(self, key: Any, compiled: Any) -> None:
        """Save the compiled form for a signature; warn if that fails."""
        data = dumps((self._stamp, key, compiled))
        try:
            handle, temporary = tempfile.mkstemp(prefix=f"{self._base}.", dir=self._directory)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(_digest(data) + data)
                os.replace(temporary, self._find(key))
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            reason = error.strerror or str(error)
            _warn_once("compiled kernels can't be cached in %s: %s", str(self._directory), reason)

    def flush(self) -> None:
        """Remove all compiled forms of the function."""
        for path in self._directory.glob(f"{self._base}.*{SUFFIX}"):
            path.unlink(missing_ok=True)

    def _find(self, key: Any) -> Path:
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return self._directory / f"{self._base}.{name}{SUFFIX}"


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_SIZE).digest()
