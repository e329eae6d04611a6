"""A small throw-away tree for the tests of this folder."""

import tempfile
from pathlib import Path

CMAKE = """
loom_room(base)  # the lowest
loom_room(dtype DEPENDS base)
loom_room(io
  DEPENDS dtype)
loom_room(backend/cpu DEPENDS dtype)
"""
ARROWS = {"base": [], "dtype": ["base"], "io": ["dtype"], "backend/cpu": ["dtype"]}


class Tree:
    """Files by path; removed with the test: `tree = Tree(self, {"src/base/a.hpp": "..."})`."""

    def __init__(self, test, files: dict[str, str]):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        for path, text in {"CMakeLists.txt": CMAKE, **files}.items():
            self.write(path, text)

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
