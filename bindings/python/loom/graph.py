"""Graphs of layers: for networks that are not a sequence."""

from typing import Any, Dict, List, Optional

from ._layer import Layer


class Value:
    """The output of a node of a Graph, or the input of the Graph."""

    def __init__(self, graph: "Graph", name: str):
        self._graph = graph
        self._name = name

    def __repr__(self) -> str:
        return f"<loom.graph.Value {self._name!r}>"


class Graph(Layer):
    """Layers as nodes that each read the values they are given.

        g = loom.Graph()
        wide = g.add(loom.Conv2d(3, 8, padding=1), g.input)
        thin = g.add(loom.Conv2d(3, 4, kernel=1), g.input, name="thin")
        g.output(g.add(loom.Concat(axis=1), wide, thin))
        net = loom.Sequential([g, loom.Dense(12 * 64, 10)], input=(3, 8, 8))

    A node without a name goes by its number in messages and files. Without output() the last node
    is the output.
    """

    TYPE = "Graph"

    def __init__(self) -> None:
        self.input = Value(self, "input")
        self._nodes: List[Dict[str, Any]] = []
        self._outputs: List[str] = []

    def add(self, layer: Layer, *inputs: Value, name: Optional[str] = None) -> Value:
        """A node that reads these values."""
        node: Dict[str, Any] = {"name": name} if name is not None else {}
        node["from"] = [self._name_of(value) for value in inputs]
        self._nodes.append({**node, **layer.description()})
        return Value(self, name if name is not None else str(len(self._nodes) - 1))

    def again(self, value: Value, *inputs: Value, name: Optional[str] = None) -> Value:
        """The output of the node of `value` for other inputs, with the same weights: a tower
        that reads two things, a step that is taken again."""
        known = self._name_of(value)
        for i, node in enumerate(self._nodes):
            if known in (node.get("name"), str(i)):
                break
        else:
            raise ValueError(
                f"{value!r} is not a node of this graph, so it has no weights to share"
            )
        layer = {k: v for k, v in node.items() if k not in ("name", "from", "shared_with")}
        made: Dict[str, Any] = {"name": name} if name is not None else {}
        made["from"] = [self._name_of(v) for v in inputs]
        made["shared_with"] = node.get("shared_with", known)
        self._nodes.append({**made, **layer})
        return Value(self, name if name is not None else str(len(self._nodes) - 1))

    def output(self, *values: Value) -> "Graph":
        """Sets the outputs of the graph: one value, or several that Session.run() tells by name."""
        self._outputs = [self._name_of(value) for value in values]
        return self

    def _name_of(self, value: Value) -> str:
        if not isinstance(value, Value) or value._graph is not self:
            raise ValueError(
                f"{value!r} is not a value of this graph: take those that add() returns"
            )
        return value._name

    def description(self) -> Dict[str, Any]:
        out: Dict[str, Any] = {"type": self.TYPE, "nodes": list(self._nodes)}
        if self._outputs:
            out["outputs"] = list(self._outputs)
        return out


__all__ = ["Graph", "Value"]
