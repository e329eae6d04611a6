"""The WebGPU library of the package wgpu, which `pip install loom-engine[gpu]` installs."""

import importlib.util
from pathlib import Path
from typing import Optional

_PATTERN = "*wgpu_native*"


def wgpu_library() -> Optional[str]:
    """The path of its library, without an import of the package; None if it is not installed."""
    found = importlib.util.find_spec("wgpu")
    for folder in (found.submodule_search_locations or []) if found else []:
        for file in sorted(Path(folder, "resources").glob(_PATTERN)):
            if file.suffix in (".so", ".dll", ".dylib"):
                return str(file)
    return None
