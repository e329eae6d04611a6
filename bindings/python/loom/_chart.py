"""Line charts as SVG text, for History; needs no package.

An axis has round ticks. A panel has one unit, so a loss and an accuracy never share an axis.
"""

import html
import math
from typing import Dict, List, Optional, Sequence, Tuple

Series = Dict[str, Sequence[Optional[float]]]
WIDTH, HEIGHT = 460, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 34, 40
# Colors that differ for color-blind readers too (Okabe and Ito, 2008).
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


class Svg(str):
    """The text of an SVG image; notebooks draw it."""

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self)


def ticks(low: float, high: float, count: int = 5) -> List[float]:
    """Round numbers (1, 2 or 5 times a power of 10) from `low` or below to `high` or above."""
    if not high > low:
        high = low + (abs(low) or 1.0) / 2
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1.0, 2.0, 5.0, 10.0) if s * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, last + 1)]


def label(value: float, step: float) -> str:
    """A tick as short as its step allows."""
    power = math.floor(math.log10(step) + 1e-9)
    if abs(value) > step / 2 and (abs(value) >= 1e6 or step < 1e-5):
        digits = max(0, math.floor(math.log10(abs(value)) + 1e-9) - power)
        return f"{value:.{digits}e}"
    return f"{abs(value) if abs(value) < step / 2 else value:.{max(0, -power)}f}"


def _finite(values: Sequence[Optional[float]]) -> List[float]:
    return [v for v in values if v is not None and math.isfinite(v)]


def _line(points: Sequence[Optional[Tuple[float, float]]], color: str) -> str:
    """A line with a gap at each None; a point without neighbors is a dot."""
    parts: List[List[Tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            parts.append([])
        else:
            parts[-1].append(point)
    out = []
    for part in filter(None, parts):
        if len(part) == 1:
            x, y = part[0]
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>')
            continue
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in part)
        out.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.8"/>'
        )
    return "".join(out)


def panel(title: str, series: Series, *, left: float = 0, unit: str = "epoch") -> str:
    """One chart as an SVG group; values of a series belong to 1, 2, 3 ... of `unit`."""
    values = [v for line in series.values() for v in _finite(line)] or [0.0]
    rows = ticks(min(values), max(values), 4)
    steps = max(len(line) for line in series.values())
    columns = [c for c in ticks(1, max(steps, 2), 6) if 1 <= c <= max(steps, 2) and c % 1 == 0]
    wide, high = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def x_of(step: float) -> float:
        return left + _LEFT + wide * (step - 1) / max(1, max(steps, 2) - 1)

    def y_of(value: float) -> float:
        return _TOP + high * (1 - (value - rows[0]) / (rows[-1] - rows[0]))

    begin, end = left + _LEFT, left + _LEFT + wide
    out = [f'<text x="{begin}" y="16" font-weight="bold">{html.escape(title)}</text>']
    for value in rows:
        y, text = y_of(value), label(value, rows[1] - rows[0])
        out.append(f'<path d="M{begin} {y:.1f}H{end}" stroke="currentColor" opacity=".18"/>')
        out.append(f'<text x="{begin - 7}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    bottom = _TOP + high
    for step in columns:
        out.append(
            f'<text x="{x_of(step):.1f}" y="{bottom + 16}" text-anchor="middle">{step:.0f}</text>'
        )
    middle = begin + wide / 2
    out.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{unit}</text>')
    at = float(end)
    for i, (name, line) in reversed(list(enumerate(series.items()))):
        color = COLORS[i % len(COLORS)]
        points = [
            None if v is None or not math.isfinite(v) else (x_of(k + 1), y_of(v))
            for k, v in enumerate(line)
        ]
        out.append(_line(points, color))
        out.append(
            f'<text x="{at:.0f}" y="16" text-anchor="end" fill="{color}">{html.escape(name)}</text>'
        )
        at -= 7.0 * len(name) + 14
    return "<g>" + "".join(out) + "</g>"


def chart(panels: Dict[str, Series]) -> Svg:
    """The panels side by side."""
    width = WIDTH * max(1, len(panels))
    body = "".join(
        panel(title, series, left=WIDTH * i) for i, (title, series) in enumerate(panels.items())
    )
    return Svg(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
        f'width="{width}" height="{HEIGHT}" font-family="sans-serif" font-size="12" '
        f'fill="currentColor" style="max-width:100%">{body}</svg>'
    )
