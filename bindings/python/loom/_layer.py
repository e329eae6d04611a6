"""The common part of the layer classes, and widths that follow from the input."""

import dataclasses
from typing import Any, ClassVar, Dict, Sequence, Tuple


class _Open(int):
    """A width that follows from the input."""

    def __repr__(self) -> str:
        return "OPEN"

    def __reduce__(self) -> str:
        return "OPEN"


OPEN = _Open(0)


class Layer:
    """A layer as a plain value. layers.py has a class per kind."""

    TYPE: ClassVar[str] = ""
    _NAMES: ClassVar[Dict[str, str]] = {}
    # The width of the input, which may be left out, and the width that the only number then is.
    _WIDTHS: ClassVar[Tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Dense(32) has one number: its output."""
        if len(self._WIDTHS) != 2:
            return
        first, second = self._WIDTHS
        if getattr(self, second) is not OPEN:
            return
        if getattr(self, first) is OPEN:
            raise TypeError(f"{type(self).__name__}() needs '{second}'")
        object.__setattr__(self, second, getattr(self, first))
        object.__setattr__(self, first, OPEN)

    @property
    def _is_open(self) -> bool:
        """Whether a width follows from the input, of this layer or of a child."""
        children: Sequence[Layer] = getattr(self, "children", None) or ()
        own = bool(self._WIDTHS) and getattr(self, self._WIDTHS[0]) is OPEN
        return own or any(child._is_open for child in children)

    def description(self) -> Dict[str, Any]:
        """As the JSON of a network has it."""
        if self._WIDTHS and getattr(self, self._WIDTHS[0]) is OPEN:
            name = f"{type(self).__name__}.{self._WIDTHS[0]}"
            raise ValueError(f"{name} is not known here; give it, or use the layer in Sequential()")
        out: Dict[str, Any] = {"type": self.TYPE}
        for name, key in self._NAMES.items():
            value = getattr(self, name)
            out[key] = value if isinstance(value, (bool, int, float, str)) else list(value)
        children = getattr(self, "children", None)
        if children is not None:
            out["children"] = [child.description() for child in children]
        return out

    def _width_of(self, shape: Sequence[int]) -> int:
        """The width of an input of this shape.

        Channels precede the axes of a convolution. Norms of channels have them first. Other layers
        use the last extent; Dense reads a sample of three or more extents as one row.
        """
        if hasattr(self, "kernel"):
            axes = getattr(self, "axes", None)
            if axes is None:
                digits = [int(c) for c in type(self).__name__ if c.isdigit()]
                axes = digits[0] if digits else 2
            return shape[-axes - 1] if len(shape) > axes else 1
        if self._WIDTHS[0] == "channels":
            return shape[0]
        if len(shape) > 2 and self._WIDTHS[-1] == "out":
            width = 1
            for extent in shape:
                width *= extent
            return width
        return shape[-1]

    def _after(self, shape: Sequence[int]) -> "Layer":
        """This layer with the width of an input of this shape."""
        if self._WIDTHS and getattr(self, self._WIDTHS[0]) is OPEN:
            made: Any = self
            changed: Layer = dataclasses.replace(made, **{self._WIDTHS[0]: self._width_of(shape)})
            return changed
        return self
