"""PyTorch: the ATen graph that torch.export makes of a module, operation by operation.

Export sees what is executed: modules called twice, functions, views and branches taken. Parameters
and buffers are read as they are at the time, in inference mode; the module's own mode is restored.
If the batch is fixed, PyTorch computes values that depend on no input (positions, masks).
"""

import json
import operator
from importlib import import_module
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ..errors import LoomError
from ..network import Network

# They fill the table of rules.
from . import (  # noqa: F401
    torch_convolutions,
    torch_logic,
    torch_ops,
    torch_order,
    torch_places,
    torch_recurrences,
    torch_shapes,
)
from .plan import Plan
from .torch_graph import RULES, Graph
from .torch_state import METADATA, Marks, names_of, wrong_of


def absorb_module(module: Any, inputs: Tuple[Any, ...], *, open_batch: bool = True) -> Any:
    """The plan, the inputs as arrays, and what the module says of them (empty with problems).

    open_batch: any batch may be asked later, where the module allows it; else that of the inputs.
    """
    torch: Any = import_module("torch")
    training = module.training
    try:
        module.eval()
        with torch.no_grad():
            export = import_module("torch.export").export
            program = _exported(module, inputs) if open_batch else export(module, inputs)
            plan = _plan_of(module, program, torch.__version__, folds=not open_batch)
            if plan.problems:
                return plan, [], []
            plan.torch = Source(module, program, folds=not open_batch)
            said = module(*inputs)
    finally:
        module.train(training)
    outputs = import_module("torch.utils._pytree").tree_leaves(said)  # as export lists them
    arrays = [np.ascontiguousarray(i.detach().cpu().numpy()) for i in inputs]
    return plan, arrays, [o.detach().cpu().float().numpy() for o in outputs]


def _exported(module: Any, inputs: Tuple[Any, ...]) -> Any:
    """With an open batch where the module allows it; one of a single sample is shown as two."""
    torch: Any = import_module("torch")
    batch = torch.export.Dim("batch", min=1)
    shown = tuple(torch.cat([i, i]) if i.dim() > 0 and i.shape[0] == 1 else i for i in inputs)
    dims = tuple({0: batch} if i.dim() > 0 else None for i in shown)
    try:
        return torch.export.export(
            module, shown, dynamic_shapes=(dims,) if _variadic(module) else dims
        )
    except Exception:  # torch raises errors of many kinds for a batch that it has to fix
        return torch.export.export(module, inputs)


def _variadic(module: Any) -> bool:
    import inspect

    kinds = [p.kind for p in inspect.signature(module.forward).parameters.values()]
    return inspect.Parameter.VAR_POSITIONAL in kinds


class Source:
    """The module of a plan; which of its state_dict went where."""

    def __init__(self, module: Any, program: Any, *, folds: bool) -> None:
        self.module, self.program, self.folds = module, program, folds
        self.target, self.prefix = module, ""  # what weights go back to, and its name in `module`
        self.names: Dict[str, str] = {}  # as a description has them
        self.problem = ""  # why there are none
        self._marks: Optional[Marks] = None

    def find(self, plan: Plan, engine: Any) -> None:
        """Makes a network of marks, and puts `names` into the plan."""
        try:
            marks = self._marks = Marks(self.module, self._statistics())
            marked = _plan_of(self.module, self.program, "", folds=self.folds, marks=marks)
            network = Network.load(marked.serialize(), name="marks.onnx", engine=engine)
            self.names = names_of(network, marks, self._constants(marks), self.prefix)
            plan.metadata[METADATA] = json.dumps(self.names)
        except LoomError as error:
            self.problem = str(error)

    def holds(self, network: Any, plan: Plan) -> bool:
        """Whether the network has the numbers of the module where `names` say. If not, the plan
        loses them."""
        marks, self._marks = self._marks, None
        self.problem = self.problem or wrong_of(network, self.names, marks, self.prefix)
        if self.problem:
            plan.metadata.pop(METADATA, None)
            self.names = {}
        return not self.problem

    def _read(self) -> List[str]:
        """Entries of parameters and buffers that some operation reads."""
        signature = self.program.graph_signature
        stored = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        return [stored[n.name] for n in self.program.graph.nodes if n.users and n.name in stored]

    def _statistics(self) -> List[str]:
        """Buffers that batch norms change in training."""
        buffers = self.program.graph_signature.inputs_to_buffers
        norms = [n for n in self.program.graph.nodes if "batch_norm" in str(n.target)]
        read = [a.name for n in norms for a in n.args[3:5] if hasattr(a, "name")]
        return sorted({buffers[name] for name in read if name in buffers})

    def _constants(self, marks: Marks) -> Dict[str, Any]:
        own = {**dict(self.module.named_buffers()), **dict(self.module.named_parameters())}
        known = {*marks.names, *marks.aliases}
        return {n: own[n] for n in self._read() if n in own and n not in known}


def _plan_of(
    module: Any, program: Any, version: str, *, folds: bool, marks: Optional[Marks] = None
) -> Plan:
    plan = Plan("PyTorch", version, type(module).__name__)
    graph = Graph(plan, folds)
    signature = program.graph_signature
    stored = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    constants = getattr(signature, "inputs_to_lifted_tensor_constants", {})
    state = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
        **program.state_dict,
    }
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    if marks is not None:
        state, trained = ({n: marks.of(t) for n, t in all_.items()} for all_ in (state, trained))
    plan.trainable = {int(p.data_ptr()): name for name, p in trained.items()}
    read = [
        state[name]
        for node in program.graph.nodes
        for name in [signature.inputs_to_parameters.get(node.name)]
        if name is not None and node.users
    ]
    sizes = {int(p.data_ptr()): p.numel() for p in read}
    plan.source_parameters = sum(n for at, n in sizes.items() if at in plan.trainable)
    for node in program.graph.nodes:
        if node.op == "placeholder":
            if node.name in stored:
                graph.arrays[node] = state[stored[node.name]]
            elif node.name in constants:
                graph.arrays[node] = program.constants[constants[node.name]]
            else:
                _input(graph, node)
        elif node.op == "call_function":
            _call(graph, node)
        elif node.op == "output":
            _outputs(graph, node, signature)
    return plan


def _input(graph: Graph, node: Any) -> None:
    value = node.meta["val"]
    whole = not value.is_floating_point()
    dims = [d if isinstance(d, int) else "batch" for d in graph.shape(node)]
    graph.names[node] = graph.plan.input(node.name, dims, ids=whole)


def _outputs(graph: Graph, node: Any, signature: Any) -> None:
    if graph.plan.problems:
        return
    users = set(signature.user_outputs)
    for i, value in enumerate(v for v in node.args[0] if v.name in users):
        graph.plan.output(graph.name(value), f"output{i}")


# Operations that give the numbers of a parameter, each once, in another layout.
_LAYOUTS = {
    f"aten.{op}"
    for op in (
        "view.default reshape.default t.default transpose.int permute.default unsqueeze.default "
        "squeeze.dim squeeze.default clone.default detach.default contiguous.default alias.default"
    ).split()
}


def _known(graph: Graph, node: Any) -> bool:
    """Whether nothing that it takes depends on an input; then PyTorch computes it here."""
    name = str(node.target)
    torch: Any = import_module("torch")
    tensor = isinstance(node.meta.get("val"), torch.Tensor)
    if not tensor or node.target is operator.getitem:
        return False
    if any(n not in graph.arrays for n in node.all_input_nodes):
        return False
    drawn = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
    if drawn or node.target._schema.is_mutable:
        return False
    made_of = [at for n in node.all_input_nodes for at in graph.places(n)]
    trainable = graph.plan.trainable or {}
    if any(at in trainable for at in made_of) and not (graph.folds and name in _LAYOUTS):
        return False  # training changes the parameters, and not what was made of them
    args, kwargs = import_module("torch.fx").node.map_arg(
        (node.args, node.kwargs), lambda n: graph.arrays[n]
    )
    graph.arrays[node] = node.target(*args, **kwargs)
    graph.made_of[node] = made_of
    return True


def _call(graph: Graph, node: Any) -> None:
    if not node.users:
        return
    graph.node = node
    name = str(node.target)
    stack = node.meta.get("nn_module_stack") or {}
    graph.plan.forget()
    graph.plan.origin = next(reversed([p for p, _ in stack.values()]), "") if stack else ""
    if _known(graph, node):
        return
    made = RULES.get(name) or RULES.get(name.rsplit(".", 1)[0])
    if node.target is operator.getitem:
        if node.args[0] in graph.refused:
            graph.refused.add(node)
        whole = graph.names.get(node.args[0])
        if whole is not None:
            part = whole[node.args[1]]
            graph.names[node] = part() if callable(part) else part
        return
    if (
        "val" in node.meta
        and not hasattr(node.meta["val"], "dtype")
        and not isinstance(node.meta["val"], (list, tuple))
    ):
        return  # an extent: rules read it from the shapes of their outputs
    if any(n in graph.refused for n in node.all_input_nodes):
        graph.refused.add(node)  # it was said before, where it began
        return
    if made is None:
        graph.refused.add(node)
        graph.plan.refuse(name, "no rule for this operation")
        return
    try:
        value = made(graph, *node.args, **node.kwargs)
        if value is not None:
            graph.names[node] = value
    except NotImplementedError as error:
        graph.refused.add(node)
        graph.plan.refuse(name, str(error))
    except (KeyError, TypeError) as error:
        # Its arguments have a form unknown to it.
        graph.refused.add(node)
        graph.plan.refuse(name, f"arguments without a rule ({error})")
