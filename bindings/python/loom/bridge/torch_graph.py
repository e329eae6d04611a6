"""Code that the rules of PyTorch's operations share: the table of them, and a plan on its way."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Set

import numpy as np

from .plan import Plan

Rule = Callable[..., Any]
RULES: Dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(made: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, made))
        return made

    return enter


def pairs(value: Any, rank: int) -> List[int]:
    """One number for each axis: PyTorch takes one for all as well."""
    values = [value] if isinstance(value, int) else list(value)
    return [int(v) for v in (values * rank if len(values) == 1 else values)]


class Graph:
    """The plan of a module on its way: values by node, and what a rule asks of them."""

    def __init__(self, plan: Plan, folds: bool = False) -> None:
        self.plan = plan
        self.folds = folds  # what depends on no input becomes a constant
        self.names: Dict[Any, Any] = {}  # of a node: a name, or a list of names
        self.arrays: Dict[Any, Any] = {}  # of a node that is a parameter, a buffer or a constant
        self.made_of: Dict[Any, List[int]] = {}  # of what was computed here: places of parameters
        self.refused: Set[Any] = set()  # nodes that have no rule, and what is made of them
        self.node: Any = None  # whose rule runs

    # ---- values ----------------------------------------------------------------------------------

    def name(self, value: Any) -> str:
        """The name of a tensor of the plan; numbers and parameters become constants."""
        if hasattr(value, "op"):
            if value in self.names:
                return str(self.names[value])
            return self.plan.constant(self.array(value))
        return self.plan.constant(np.float32(value), parameter=False)

    def places(self, node: Any) -> List[int]:
        """The addresses of the parameters that a known tensor is, or is made of."""
        return self.made_of.get(node) or [int(self.arrays[node].data_ptr())]

    def trains(self, node: Any) -> bool:
        return any(at in (self.plan.trainable or {}) for at in self.places(node))

    def array(self, node: Any) -> Any:
        """The numbers of a parameter, buffer or constant; None of None."""
        if node is None:
            return None
        if node not in self.arrays:
            raise NotImplementedError("an argument that has to be a parameter is computed")
        places = self.places(node)
        self.plan.read.extend(places)
        tensor = self.arrays[node].detach().cpu()
        if not tensor.is_floating_point():
            return tensor.numpy()
        array = tensor.double().numpy()
        if len(places) == 1:
            self.plan.see(array, places[0])
        return array

    @staticmethod
    def shape(node: Any) -> List[Any]:
        """Extents; an open one is the text of its symbol."""
        return [int(d) if isinstance(d, int) else str(d) for d in node.meta["val"].shape]

    def fixed(self, node: Any, axis: int) -> int:
        extent = self.shape(node)[axis]
        if not isinstance(extent, int):
            raise NotImplementedError(f"axis {axis} is open, and this operation needs its extent")
        return extent

    def rank(self, node: Any) -> int:
        return len(node.meta["val"].shape)

    # ---- nodes that many rules add ---------------------------------------------------------------

    def op(self, op: str, *inputs: Any, **attributes: Any) -> str:
        names = [i if isinstance(i, str) else self.name(i) for i in inputs]
        return self.plan.op(op, *names, **attributes)

    def ints(self, *values: int) -> str:
        return self.plan.constant(np.array(values, dtype=np.int64))

    def number(self, value: float) -> str:
        return self.plan.constant(np.float32(value), parameter=False)

    def shaped_as_output(self, x: str, output: Optional[Sequence[Any]] = None) -> str:
        """A reshape to the extents that export found; one of them may be open."""
        target = self.shape(self.node) if output is None else output
        open_axes = [d for d in target if not isinstance(d, int)]
        if len(open_axes) > 1:
            raise NotImplementedError(f"more than one open axis: {target}")
        return self.op("Reshape", x, self.ints(*(d if isinstance(d, int) else -1 for d in target)))
