"""What the layer classes have in common."""

from typing import Any, ClassVar, Dict


class Layer:
    """A layer as a plain value. layers.py has a class per kind."""

    TYPE: ClassVar[str] = ""
    _NAMES: ClassVar[Dict[str, str]] = {}

    def description(self) -> Dict[str, Any]:
        """As the JSON of a network has it."""
        out: Dict[str, Any] = {"type": self.TYPE}
        for name, key in self._NAMES.items():
            value = getattr(self, name)
            out[key] = value if isinstance(value, (bool, int, float, str)) else list(value)
        children = getattr(self, "children", None)
        if children is not None:
            out["children"] = [child.description() for child in children]
        return out
