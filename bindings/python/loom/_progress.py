"""The progress of a training: one line that changes, in a terminal or a notebook.

Nothing is written if stderr is a file or a pipe and no notebook runs. Lines are redrawn at most ten
times a second.
"""

import html
import shutil
import sys
import time
from typing import Any, Optional

_SECONDS = 0.1  # between two drawings


def _seconds(value: float) -> str:
    if value < 60:
        return f"{value:.0f} s"
    minutes, rest = divmod(int(value), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def notebook() -> bool:
    """Whether a notebook shows what is displayed. Imports nothing."""
    shell = sys.modules.get("IPython")
    get = getattr(shell, "get_ipython", None)
    found = None if get is None else get()
    return found is not None and hasattr(found, "kernel")


class _Terminal:
    """Redraws a line of stderr."""

    def draw(self, text: str, share: float) -> None:
        columns = shutil.get_terminal_size().columns
        room = min(30, columns - len(text) - 4)
        bar = ""
        if room >= 8:
            full = int(share * room)
            bar = "[" + "=" * full + " " * (room - full) + "] "
        sys.stderr.write("\r\x1b[K" + (bar + text)[: columns - 1])
        sys.stderr.flush()

    def end(self, text: str) -> None:
        sys.stderr.write("\r\x1b[K" + text + "\n")
        sys.stderr.flush()


class _Notebook:
    """Redraws an output of the cell."""

    def __init__(self) -> None:
        self._handle: Any = None

    def _show(self, body: str) -> None:
        shown: Any = sys.modules["IPython"].display
        markup = shown.HTML(body)
        if self._handle is None:
            self._handle = shown.display(markup, display_id=True)
        else:
            self._handle.update(markup)

    def draw(self, text: str, share: float) -> None:
        self._show(f'<progress value="{share:.4f}" max="1"></progress> {html.escape(text)}')

    def end(self, text: str) -> None:
        self._show(html.escape(text))


def _sink() -> Any:
    if notebook():
        return _Notebook()
    stream = sys.stderr
    if stream is not None and hasattr(stream, "isatty") and stream.isatty():
        return _Terminal()
    return None


class Progress:
    """Follows a fit of `epochs` epochs. lines: a line stays for each epoch."""

    def __init__(self, epochs: int, lines: bool) -> None:
        self._epochs, self._lines = epochs, lines
        self._sink = _sink()
        self._begun = self._drawn = time.monotonic()
        self._first: Optional[float] = None  # share of the work that was done at the first batch
        self._epoch, self._last = 1, ""

    @property
    def shows(self) -> bool:
        """Whether there is a place for a bar."""
        return self._sink is not None

    def batch(self, done: int, steps: int, loss: float) -> None:
        now = time.monotonic()
        share = (self._epoch - 1 + done / max(1, steps)) / self._epochs
        if self._first is None:
            self._first, self._begun = share, now
        if now - self._drawn < _SECONDS:
            return
        self._drawn = now
        ahead = share - self._first
        left = "" if ahead <= 0 else _seconds((now - self._begun) * (1 - share) / ahead) + " left"
        text = f"epoch {self._epoch}/{self._epochs}  batch {done}/{steps}  loss {loss:.5f}  {left}"
        self._sink.draw(text.rstrip(), share)

    def epoch(self, number: int, line: str) -> None:
        self._epoch, self._last = number + 1, line
        if not self._lines:
            return
        if self._sink is None or isinstance(self._sink, _Notebook):
            print(line, file=sys.stderr)
        else:
            self._sink.end(line)

    def end(self) -> None:
        """Leaves the last line in place of the bar."""
        if self._sink is None:
            return
        if self._lines and isinstance(self._sink, _Terminal):
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        elif self._last:
            self._sink.end(f"{self._last}  {_seconds(time.monotonic() - self._begun)}")
        else:
            self._sink.end("")
