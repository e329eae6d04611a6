"""Engine: the threads, the instruction set and the device that models share."""

import ctypes
import sys
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Optional

from . import _ffi
from ._gpu import wgpu_library
from ._library import (
    Handle,
    encoded,
    handle_from,
    lib,
    name_of,
    number_of,
    report,
    sized,
)


class Engine(Handle):
    """Where nothing else is said, models share one engine with all cores on the CPU.

    Sessions of one engine take turns: a program that computes at the same time on several threads
    of its own makes an engine per thread.
    """

    _FREE = "loom_engine_free"

    def __init__(
        self,
        threads: int = 0,
        *,
        isa: Optional[str] = None,
        activations: str = "automatic",
        device: str = "cpu",
        exact_threads: bool = False,
        memory_limit: int = 0,
        gpu_library: Optional[str] = None,
        gpu_strict: bool = False,
        gpu_tuning: str = "on",
        gpu_cache: Optional[str] = None,
        log: Optional[Callable[[str, str], Any]] = None,
    ) -> None:
        """log(level, line): receives progress ("debug"), completed work ("info") and what went
        another
        way than was asked for ("warning"), from the thread that called the library."""
        self._log = _log_sink(log)
        if device == "gpu" and gpu_library is None:
            gpu_library = wgpu_library()
        options = sized(
            _ffi.loom_engine_options,
            threads=threads,
            exact_threads=exact_threads,
            isa=encoded(isa),
            activations=number_of(_ffi.ACTIVATIONS, activations, "activations"),
            device=number_of(_ffi.DEVICE, device, "device"),
            gpu_library=encoded(gpu_library),
            gpu_tuning=number_of(_ffi.GPU_TUNING, gpu_tuning, "GPU tuning"),
            gpu_cache=encoded(gpu_cache),
            memory_limit=memory_limit,
            gpu_strict=gpu_strict,
            log=self._log,
        )
        super().__init__(handle_from(lib.loom_engine_create, ctypes.byref(options)))

    @property
    def info(self) -> Dict[str, Any]:
        """threads, cores, isa, isas, activations, device, threads_built_in."""
        info = report(_ffi.loom_engine_info, lib.loom_engine_get_info, self.handle)
        return {
            "threads": info.threads,
            "cores": info.cores,
            "threads_built_in": bool(info.threads_built_in),
            "isa": info.isa.decode(),
            "isas": info.isas.decode().split(),
            "activations": name_of(_ffi.ACTIVATIONS, info.activations),
            "device": info.device.decode(),
        }

    @property
    def memory(self) -> Dict[str, int]:
        """Bytes that networks, models, sessions and trainers of this engine hold now: weights,
        sessions, training, their total, its peak, and mapped weights, which are not in it."""
        held = report(_ffi.loom_memory, lib.loom_engine_get_memory, self.handle)
        return {row[0]: getattr(held, row[0]) for row in held._fields_[1:]}

    def __repr__(self) -> str:
        if self.closed:
            return "<loom.Engine, closed>"
        info = self.info
        return f"<loom.Engine {info['device']}, {info['isa']}, {info['threads']} threads>"


_sinks: List[Any] = []  # models and networks outlive their engine, and go on to tell


def _log_sink(log: Optional[Callable[[str, str], Any]]) -> Any:
    if log is None:
        return _ffi.loom_log_fn()
    wanted = log

    def told(_user: Any, level: int, line: bytes) -> int:
        try:
            wanted(name_of(_ffi.LOG_LEVEL, level), line.decode("utf-8", "replace"))
        except Exception as error:  # no caller can catch it
            unraisable: Any = SimpleNamespace(
                exc_type=type(error),
                exc_value=error,
                exc_traceback=error.__traceback__,
                err_msg="in the log of a loom.Engine",
                object=wanted,
            )
            sys.unraisablehook(unraisable)
        return 0

    made = _ffi.loom_log_fn(told)
    _sinks.append(made)
    return made


def engine_handle(engine: Optional[Engine]) -> Optional[int]:
    """For C: null is the shared engine."""
    return None if engine is None else engine.handle
