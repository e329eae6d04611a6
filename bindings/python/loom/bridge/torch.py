"""PyTorch: the ATen graph that torch.export makes of a module, operation by operation.

Export sees what is executed: modules called twice, functions, views and branches taken. Parameters
and buffers are read as they are at the time, in inference mode; the module's own mode is restored.
"""

import math
import operator
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from .plan import Plan

Rule = Callable[..., Any]
_RULES: Dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return enter


class Graph:
    """The plan of a module on its way: values by node, and what a rule asks of them."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names: Dict[Any, Any] = {}  # of a node: a name, or a list of names
        self.arrays: Dict[Any, Any] = {}  # of a node that is a parameter, a buffer or a constant
        self.node: Any = None  # whose rule runs

    # ---- values ----------------------------------------------------------------------------------

    def name(self, value: Any) -> str:
        """The name of a tensor of the plan; numbers and parameters become constants."""
        if hasattr(value, "op"):
            if value in self.names:
                return self.names[value]
            return self.plan.constant(self.array(value))
        return self.plan.constant(np.float32(value), parameter=False)

    def array(self, node: Any) -> Any:
        """The numbers of a parameter, buffer or constant; None of None."""
        if node is None:
            return None
        if node not in self.arrays:
            raise NotImplementedError("an argument that has to be a parameter is computed")
        tensor = self.arrays[node].detach().cpu()
        return tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy()

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


def absorb_module(module: Any, inputs: Tuple[Any, ...]) -> Any:
    """The plan, the inputs as arrays, and what the module says of them (empty with problems)."""
    import torch

    training = module.training
    try:
        module.eval()
        with torch.no_grad():
            program = _exported(module, inputs)
            plan = _plan_of(module, program, torch.__version__)
            if plan.problems:
                return plan, [], []
            said = module(*inputs)
    finally:
        module.train(training)
    outputs = said if isinstance(said, (tuple, list)) else [said]
    arrays = [np.ascontiguousarray(i.detach().cpu().numpy()) for i in inputs]
    return plan, arrays, [o.detach().cpu().float().numpy() for o in outputs]


def _exported(module: Any, inputs: Tuple[Any, ...]) -> Any:
    """With an open batch where the module allows it; one of a single sample is shown as two."""
    import torch

    batch = torch.export.Dim("batch", min=1)
    shown = tuple(torch.cat([i, i]) if i.dim() > 0 and i.shape[0] == 1 else i for i in inputs)
    dims = tuple({0: batch} if i.dim() > 0 else None for i in shown)
    try:
        return torch.export.export(module, shown, dynamic_shapes=(dims,) if _variadic(module) else dims)
    except Exception:  # torch raises errors of many kinds for a batch that it has to fix
        return torch.export.export(module, inputs)


def _variadic(module: Any) -> bool:
    import inspect

    kinds = [p.kind for p in inspect.signature(module.forward).parameters.values()]
    return inspect.Parameter.VAR_POSITIONAL in kinds


def _plan_of(module: Any, program: Any, version: str) -> Plan:
    plan = Plan("PyTorch", version, type(module).__name__)
    graph = Graph(plan)
    signature = program.graph_signature
    stored = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    constants = getattr(signature, "inputs_to_lifted_tensor_constants", {})
    state = {**dict(module.named_parameters(remove_duplicate=False)),
             **dict(module.named_buffers(remove_duplicate=False)), **program.state_dict}
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


def _call(graph: Graph, node: Any) -> None:
    if not node.users:
        return
    graph.node = node
    name = str(node.target)
    stack = node.meta.get("nn_module_stack") or {}
    graph.plan.origin = next(reversed([p for p, _ in stack.values()]), "") if stack else ""
    rule = _RULES.get(name) or _RULES.get(name.rsplit(".", 1)[0])
    if node.target is operator.getitem:
        whole = graph.names.get(node.args[0])
        if whole is not None:
            part = whole[node.args[1]]
            graph.names[node] = part() if callable(part) else part
        return
    if "val" in node.meta and not hasattr(node.meta["val"], "dtype") and \
            not isinstance(node.meta["val"], (list, tuple)):
        return  # an extent: rules read it from the shapes of their outputs
    if rule is None:
        graph.plan.refuse(name, "no rule for this operation")
        return
    try:
        graph.names[node] = rule(graph, *node.args, **node.kwargs)
    except NotImplementedError as error:
        graph.plan.refuse(name, str(error))
    except (KeyError, TypeError) as error:
        # What a rule needs was refused before, or its arguments are of a form that it does not know.
        graph.plan.refuse(name, f"arguments without a rule ({error})")


# ---- products --------------------------------------------------------------------------------------


@_rule("aten.linear.default")
def _(g: Graph, x: Any, weight: Any, bias: Any = None) -> str:
    if weight in g.names:
        y = g.op("MatMul", x, g.op("Transpose", weight, perm=[1, 0]))
        return y if bias is None else g.op("Add", y, bias)
    return g.plan.dense(g.name(x), g.array(weight), g.array(bias))


@_rule("aten.matmul.default", "aten.bmm.default", "aten.mm.default")
def _(g: Graph, a: Any, b: Any) -> str:
    return g.op("MatMul", a, b)


@_rule("aten.addmm.default")
def _(g: Graph, bias: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> str:
    if (beta, alpha) != (1, 1):
        raise NotImplementedError("beta and alpha other than 1")
    return g.op("Add", g.op("MatMul", a, b), bias)


@_rule("aten.einsum.default")
def _(g: Graph, equation: str, operands: Sequence[Any], path: Any = None) -> str:
    return g.op("Einsum", *operands, equation=equation)


def _pairs(value: Any, rank: int) -> List[int]:
    values = [value] if isinstance(value, int) else list(value)
    return [int(v) for v in (values * rank if len(values) == 1 else values)]


def _convolution(
    g: Graph, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> str:
    w = g.array(weight)
    rank = w.ndim - 2
    pads = _same_pads(w, dilation, rank, padding) if isinstance(padding, str) else None
    if pads is None:
        pads = _pairs(padding, rank) * 2
    inputs = [g.name(x), g.plan.constant(w)]
    if bias is not None:
        inputs.append(g.plan.constant(g.array(bias)))
    return g.plan.op("Conv", *inputs, kernel_shape=list(w.shape[2:]), strides=_pairs(stride, rank),
                     pads=pads, dilations=_pairs(dilation, rank), group=int(groups))


def _same_pads(w: Any, dilation: Any, rank: int, padding: str) -> List[int]:
    if padding == "valid":
        return [0] * (2 * rank)
    total = [d * (k - 1) for d, k in zip(_pairs(dilation, rank), w.shape[2:])]
    low = [t // 2 for t in total]
    return low + [t - b for t, b in zip(total, low)]


@_rule("aten.conv1d", "aten.conv2d", "aten.conv3d")
def _(g: Graph, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
      dilation: Any = 1, groups: int = 1) -> str:
    return _convolution(g, x, weight, bias, stride, padding, dilation, groups)


@_rule("aten.convolution.default")
def _(g: Graph, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
      transposed: bool, output_padding: Any, groups: int) -> str:
    if transposed:
        return _transposed(g, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return _convolution(g, x, weight, bias, stride, padding, dilation, groups)


@_rule("aten.conv_transpose1d.default", "aten.conv_transpose2d.input",
       "aten.conv_transpose3d.input")
def _transposed(g: Graph, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
                output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> str:
    w = g.array(weight)
    rank = w.ndim - 2
    inputs = [g.name(x), g.plan.constant(w)]
    if bias is not None:
        inputs.append(g.plan.constant(g.array(bias)))
    return g.plan.op("ConvTranspose", *inputs, kernel_shape=list(w.shape[2:]),
                     strides=_pairs(stride, rank), pads=_pairs(padding, rank) * 2,
                     output_padding=_pairs(output_padding, rank),
                     dilations=_pairs(dilation, rank), group=int(groups))


@_rule("aten.embedding.default")
def _(g: Graph, weight: Any, ids: Any, padding_idx: int = -1, scale_grad: bool = False,
      sparse: bool = False) -> str:
    return g.op("Gather", weight, ids, axis=0)


# ---- normalization ----------------------------------------------------------------------------------


@_rule("aten.batch_norm.default", "aten._native_batch_norm_legit_no_training.default")
def _(g: Graph, x: Any, weight: Any, bias: Any, mean: Any, var: Any, *rest: Any) -> Any:
    legit = "no_training" in str(g.node.target)
    training, eps = (False, rest[1]) if legit else (rest[0], rest[2])
    if training or mean is None:
        raise NotImplementedError("statistics of the batch are used in inference too")
    width = len(g.array(mean))
    scale = np.ones(width) if weight is None else g.array(weight)
    shift = np.zeros(width) if bias is None else g.array(bias)
    constants = [g.plan.constant(v) for v in (scale, shift, g.array(mean), g.array(var))]
    y = g.op("BatchNormalization", x, *constants, epsilon=float(eps))
    return [y] if legit else y


@_rule("aten.layer_norm.default")
def _(g: Graph, x: Any, shape: Sequence[int], weight: Any = None, bias: Any = None,
      eps: float = 1e-5, cudnn: bool = True) -> str:
    scale = np.ones(shape) if weight is None else g.array(weight)
    inputs = [g.name(x), g.plan.constant(scale)]
    if bias is not None:
        inputs.append(g.plan.constant(g.array(bias)))
    return g.plan.op("LayerNormalization", *inputs, axis=-len(shape), epsilon=float(eps))


@_rule("aten.rms_norm.default", "aten._fused_rms_norm.default")
def _(g: Graph, x: Any, shape: Sequence[int], weight: Any = None, eps: Optional[float] = None) -> str:
    eps = float(np.finfo(np.float32).eps) if eps is None else eps
    axes = g.ints(*range(-len(shape), 0))
    mean = g.op("ReduceMean", g.op("Mul", x, x), axes, keepdims=1)
    y = g.op("Div", x, g.op("Sqrt", g.op("Add", mean, g.number(eps))))
    return y if weight is None else g.op("Mul", y, weight)


@_rule("aten.group_norm.default")
def _(g: Graph, x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
      cudnn: bool = True) -> str:
    shape = g.shape(g.node)
    parts = [d if isinstance(d, int) else -1 for d in shape[:1]] + [int(groups), -1]
    if parts.count(-1) > 1:
        parts[2] = math.prod(int(d) for d in shape[1:]) // int(groups)
    rows = g.op("Reshape", x, g.ints(*parts))
    ones, zeros = g.plan.constant(np.ones(groups)), g.plan.constant(np.zeros(groups))
    y = g.op("InstanceNormalization", rows, ones, zeros, epsilon=float(eps))
    return _affine(g, g.shaped_as_output(y), weight, bias)


@_rule("aten.instance_norm.default")
def _(g: Graph, x: Any, weight: Any, bias: Any, mean: Any, var: Any, use_input_stats: bool,
      momentum: float, eps: float, cudnn: bool) -> str:
    if not use_input_stats:
        raise NotImplementedError("running statistics of an instance norm")
    width = g.fixed(x, 1)
    scale = np.ones(width) if weight is None else g.array(weight)
    shift = np.zeros(width) if bias is None else g.array(bias)
    return g.op("InstanceNormalization", x, g.plan.constant(scale), g.plan.constant(shift),
                epsilon=float(eps))


def _affine(g: Graph, y: str, weight: Any, bias: Any) -> str:
    """A scale and a shift of each channel, the axis 1."""
    ones = [1] * (g.rank(g.node) - 2)
    if weight is not None:
        y = g.op("Mul", y, g.plan.constant(g.array(weight).reshape(-1, *ones)))
    if bias is not None:
        y = g.op("Add", y, g.plan.constant(g.array(bias).reshape(-1, *ones)))
    return y


# ---- element by element -------------------------------------------------------------------------------

_UNARY = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "neg": "Neg",
    "sqrt": "Sqrt", "abs": "Abs", "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "sign": "Sign",
    "reciprocal": "Reciprocal", "mish": "Mish", "softsign": "Softsign", "round": "Round",
}
for _torch_name, _onnx_name in _UNARY.items():
    @_rule(f"aten.{_torch_name}.default", f"aten.{_torch_name}_.default")
    def _(g: Graph, x: Any, _name: str = _onnx_name) -> str:
        return g.op(_name, x)


@_rule("aten.silu.default", "aten.silu_.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Mul", x, g.op("Sigmoid", x))


@_rule("aten.gelu.default")
def _(g: Graph, x: Any, approximate: str = "none") -> str:
    return g.op("Gelu", x, approximate=approximate)


@_rule("aten.leaky_relu.default", "aten.leaky_relu_.default")
def _(g: Graph, x: Any, slope: float = 0.01) -> str:
    return g.op("LeakyRelu", x, alpha=float(slope))


@_rule("aten.elu.default", "aten.elu_.default")
def _(g: Graph, x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> str:
    if (scale, input_scale) != (1, 1):
        raise NotImplementedError("an ELU with scales")
    return g.op("Elu", x, alpha=float(alpha))


@_rule("aten.selu.default", "aten.selu_.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Selu", x)


@_rule("aten.celu.default")
def _(g: Graph, x: Any, alpha: float = 1) -> str:
    return g.op("Celu", x, alpha=float(alpha))


@_rule("aten.softplus.default")
def _(g: Graph, x: Any, beta: float = 1, threshold: float = 20) -> str:
    if beta != 1:
        scaled = g.op("Softplus", g.op("Mul", x, g.number(beta)))
        return g.op("Mul", scaled, g.number(1 / beta))
    return g.op("Softplus", x)


@_rule("aten.prelu.default")
def _(g: Graph, x: Any, weight: Any) -> str:
    slope = g.array(weight)
    if slope.size > 1:
        slope = slope.reshape(-1, *[1] * (g.rank(x) - 2))
    return g.op("PRelu", x, g.plan.constant(slope))


@_rule("aten.glu.default")
def _(g: Graph, x: Any, dim: int = -1) -> str:
    a, b = g.plan.ops("Split", g.name(x), outputs=2, axis=int(dim), num_outputs=2)
    return g.op("Mul", a, g.op("Sigmoid", b))


@_rule("aten.hardsigmoid.default", "aten.hardsigmoid_.default")
def _(g: Graph, x: Any) -> str:
    return g.op("HardSigmoid", x, alpha=1.0 / 6, beta=0.5)


@_rule("aten.hardswish.default", "aten.hardswish_.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Mul", x, g.op("HardSigmoid", x, alpha=1.0 / 6, beta=0.5))


@_rule("aten.relu6.default", "aten.relu6_.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Clip", x, g.number(0), g.number(6))


@_rule("aten.hardtanh.default", "aten.hardtanh_.default")
def _(g: Graph, x: Any, low: float = -1, high: float = 1) -> str:
    return g.op("Clip", x, g.number(low), g.number(high))


@_rule("aten.clamp.default", "aten.clamp_min.default", "aten.clamp_max.default")
def _(g: Graph, x: Any, low: Any = None, high: Any = None) -> str:
    if "clamp_max" in str(g.node.target):
        low, high = None, low
    largest = float(np.finfo(np.float32).max)
    return g.op("Clip", x, g.number(-largest if low is None else low),
                g.number(largest if high is None else high))


@_rule("aten.rsqrt.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Reciprocal", g.op("Sqrt", x))


@_rule("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor")
def _(g: Graph, x: Any, exponent: Any) -> str:
    return g.op("Pow", x, exponent)


@_rule("aten.sin.default", "aten.cos.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Sin" if "sin" in str(g.node.target) else "Cos", x)


_BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "maximum": "Max",
           "minimum": "Min"}
for _torch_name, _onnx_name in _BINARY.items():
    @_rule(*(f"aten.{_torch_name}{u}.{k}" for u in ("", "_") for k in ("Tensor", "Scalar", "default")))
    def _(g: Graph, a: Any, b: Any, _name: str = _onnx_name, **options: Any) -> str:
        if options.get("rounding_mode") is not None:
            raise NotImplementedError("a division that rounds")
        alpha = options.get("alpha", 1)
        return g.op(_name, a, b if alpha == 1 else g.op("Mul", b, g.number(alpha)))


@_rule("aten.rsub.Scalar", "aten.rsub.Tensor")
def _(g: Graph, a: Any, b: Any, alpha: float = 1) -> str:
    return g.op("Sub", b, a if alpha == 1 else g.op("Mul", a, g.number(alpha)))


# ---- softmax, attention ---------------------------------------------------------------------------------


@_rule("aten.softmax.int", "aten._softmax.default")
def _(g: Graph, x: Any, dim: int, half_to_float: Any = None) -> str:
    return g.op("Softmax", x, axis=int(dim))


@_rule("aten.log_softmax.int", "aten._log_softmax.default")
def _(g: Graph, x: Any, dim: int, half_to_float: Any = None) -> str:
    return g.op("LogSoftmax", x, axis=int(dim))


@_rule("aten.scaled_dot_product_attention.default")
def _(g: Graph, q: Any, k: Any, v: Any, mask: Any = None, dropout: float = 0.0,
      causal: bool = False, *, scale: Optional[float] = None, enable_gqa: bool = False) -> str:
    if enable_gqa:
        raise NotImplementedError("groups of heads inside of the attention")
    rank = g.rank(k)
    width = g.fixed(q, -1)
    factor = 1 / math.sqrt(width) if scale is None else scale
    turned = g.op("Transpose", k, perm=[*range(rank - 2), rank - 1, rank - 2])
    scores = g.op("Mul", g.op("MatMul", q, turned), g.number(factor))
    if causal:
        low = np.triu(np.full((g.fixed(q, -2), g.fixed(k, -2)), -1e30), 1)
        scores = g.op("Add", scores, g.plan.constant(low, parameter=False))
    if mask is not None:
        given = g.array(mask)
        values = np.where(given, 0.0, -1e30) if given.dtype == bool else np.maximum(given, -1e30)
        scores = g.op("Add", scores, g.plan.constant(values, parameter=False))
    return g.op("MatMul", g.op("Softmax", scores, axis=-1), v)


# ---- shapes ---------------------------------------------------------------------------------------------


@_rule("aten.view.default", "aten.reshape.default", "aten.flatten.using_ints",
       "aten._unsafe_view.default", "aten.unflatten.int", "aten.squeeze.dim", "aten.squeeze.dims",
       "aten.squeeze.default", "aten.unsqueeze.default", "aten.view_as.default")
def _(g: Graph, x: Any, *rest: Any) -> str:
    return g.shaped_as_output(g.name(x))


@_rule("aten.permute.default")
def _(g: Graph, x: Any, dims: Sequence[int]) -> str:
    return g.op("Transpose", x, perm=[d % g.rank(x) for d in dims])


@_rule("aten.transpose.int", "aten.t.default")
def _(g: Graph, x: Any, a: int = 0, b: int = 1) -> str:
    perm = list(range(g.rank(x)))
    perm[a], perm[b] = perm[b], perm[a]
    return g.op("Transpose", x, perm=perm)


@_rule("aten.contiguous.default", "aten.clone.default", "aten.dropout.default",
       "aten.dropout_.default", "aten.feature_dropout.default", "aten.alpha_dropout.default",
       "aten.detach.default", "aten.detach_.default", "aten.alias.default", "aten.to.dtype",
       "aten._to_copy.default", "aten.lift_fresh_copy.default", "aten.type_as.default",
       "aten.to.dtype_layout", "aten._assert_tensor_metadata.default")
def _(g: Graph, x: Any, *rest: Any, **options: Any) -> Any:
    if "assert" in str(g.node.target):
        return None
    value = g.node.meta["val"]
    if value.is_floating_point() != x.meta["val"].is_floating_point():
        return g.op("Cast", x, to=1 if value.is_floating_point() else 7)
    return g.name(x)


@_rule("aten.cat.default", "aten.concat.default")
def _(g: Graph, parts: Sequence[Any], dim: int = 0) -> str:
    return g.op("Concat", *parts, axis=int(dim))


@_rule("aten.stack.default")
def _(g: Graph, parts: Sequence[Any], dim: int = 0) -> str:
    axis = g.ints(dim % g.rank(g.node))
    return g.op("Concat", *(g.op("Unsqueeze", p, axis) for p in parts), axis=dim % g.rank(g.node))


@_rule("aten.split.Tensor", "aten.split_with_sizes.default", "aten.chunk.default",
       "aten.split.sizes")
def _(g: Graph, x: Any, how: Any, dim: int = 0) -> List[str]:
    sizes = [int(v.shape[dim]) for v in g.node.meta["val"]]
    return g.plan.ops("Split", g.name(x), g.ints(*sizes), outputs=len(sizes), axis=int(dim))


@_rule("aten.unbind.int")
def _(g: Graph, x: Any, dim: int = 0) -> List[str]:
    count = g.fixed(x, dim)
    parts = g.plan.ops("Split", g.name(x), g.ints(*[1] * count), outputs=count, axis=int(dim))
    return [g.op("Squeeze", p, g.ints(dim)) for p in parts]


@_rule("aten.slice.Tensor")
def _(g: Graph, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> str:
    if g.shape(x) == g.shape(g.node):
        return g.name(x)
    first = 0 if start is None else start
    last = 2**31 - 1 if end is None or not isinstance(end, int) else min(end, 2**31 - 1)
    return g.op("Slice", x, g.ints(first), g.ints(last), g.ints(dim), g.ints(step))


@_rule("aten.select.int")
def _(g: Graph, x: Any, dim: int, index: int) -> str:
    return g.op("Gather", x, g.plan.constant(np.array(index, dtype=np.int64)), axis=int(dim))


@_rule("aten.expand.default", "aten.expand_as.default")
def _(g: Graph, x: Any, *rest: Any, **options: Any) -> str:
    source, target = g.shape(x), g.shape(g.node)
    if source == target:
        return g.name(x)
    if any(isinstance(t, str) and s == 1 for s, t in zip([1] * (len(target) - len(source)) + source,
                                                         target)):
        return _over_the_batch(g, x, target)
    dims = [t if isinstance(t, int) else 1 for t in target]
    return g.op("Expand", x, g.ints(*dims))


def _over_the_batch(g: Graph, x: Any, target: List[Any]) -> str:
    """One sample for each of the batch: added to the zeros that a sample of the input gives."""
    if x not in g.arrays or isinstance(target[0], int):
        raise NotImplementedError("a repetition over the open batch of what is computed")
    first = next(n for n in g.names if n.op == "placeholder")
    rows = g.plan.op("Flatten", g.names[first], axis=1)
    if not first.meta["val"].is_floating_point():
        rows = g.plan.op("Cast", rows, to=1)
    low = g.plan.op("ReduceMin", rows, g.ints(1), keepdims=1)
    zero = g.plan.op("Mul", low, g.number(0))
    zero = g.plan.op("Reshape", zero, g.ints(-1, *[1] * (len(target) - 1)))
    value = np.broadcast_to(g.array(x), [1, *target[1:]])
    return g.plan.op("Add", zero, g.plan.constant(value))


@_rule("aten.repeat.default")
def _(g: Graph, x: Any, repeats: Sequence[int]) -> str:
    return g.op("Tile", x, g.ints(*repeats))


@_rule("aten.pad.default", "aten.constant_pad_nd.default")
def _(g: Graph, x: Any, pad: Sequence[int], mode: Any = "constant", value: Any = None) -> str:
    if not isinstance(mode, str):
        mode, value = "constant", mode
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    rank = g.rank(x)
    low, high = [0] * rank, [0] * rank
    for i in range(len(pad) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    fill = [g.number(value or 0)] if mode == "constant" else []
    return g.op("Pad", x, g.ints(*low, *high), *fill, mode=names[mode])


@_rule("aten.flip.default")
def _(g: Graph, x: Any, dims: Sequence[int]) -> str:
    n = len(dims)
    return g.op("Slice", x, g.ints(*[-1] * n), g.ints(*[-(2**31)] * n), g.ints(*dims),
                g.ints(*[-1] * n))


@_rule("aten.pixel_shuffle.default")
def _(g: Graph, x: Any, factor: int) -> str:
    return g.op("DepthToSpace", x, blocksize=int(factor), mode="CRD")


# ---- reductions, pooling, resizing ----------------------------------------------------------------------

_REDUCE = {"mean": "ReduceMean", "sum": "ReduceSum", "amax": "ReduceMax", "amin": "ReduceMin"}
for _torch_name, _onnx_name in _REDUCE.items():
    @_rule(f"aten.{_torch_name}.dim", f"aten.{_torch_name}.dim_IntList", f"aten.{_torch_name}.default")
    def _(g: Graph, x: Any, dims: Any = None, keep: bool = False, _name: str = _onnx_name,
          **options: Any) -> str:
        axes = range(g.rank(x)) if dims is None or dims == [] else dims
        axes = [axes] if isinstance(axes, int) else list(axes)
        return g.op(_name, x, g.ints(*axes), keepdims=int(keep))


@_rule("aten.max_pool1d.default", "aten.max_pool2d.default", "aten.max_pool3d.default",
       "aten.max_pool2d_with_indices.default")
def _(g: Graph, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
      ceil: bool = False) -> Any:
    rank = g.rank(x) - 2
    window = _pairs(kernel, rank)
    y = g.op("MaxPool", x, kernel_shape=window, strides=_pairs(stride, rank) if stride else window,
             pads=_pairs(padding, rank) * 2, dilations=_pairs(dilation, rank),
             ceil_mode=int(ceil))
    return [y] if "indices" in str(g.node.target) else y


@_rule("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def _(g: Graph, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil: bool = False,
      count_pad: bool = True, divisor: Any = None) -> str:
    if divisor is not None:
        raise NotImplementedError("a divisor of one's own")
    rank = g.rank(x) - 2
    window = _pairs(kernel, rank)
    return g.op("AveragePool", x, kernel_shape=window,
                strides=_pairs(stride, rank) if stride else window,
                pads=_pairs(padding, rank) * 2, ceil_mode=int(ceil),
                count_include_pad=int(count_pad))


@_rule("aten.adaptive_avg_pool1d.default", "aten.adaptive_avg_pool2d.default",
       "aten.adaptive_avg_pool3d.default", "aten._adaptive_avg_pool2d.default")
def _(g: Graph, x: Any, size: Any) -> str:
    return _adaptive(g, x, size, "AveragePool", "GlobalAveragePool")


@_rule("aten.adaptive_max_pool1d.default", "aten.adaptive_max_pool2d.default")
def _(g: Graph, x: Any, size: Any) -> List[str]:
    return [_adaptive(g, x, size, "MaxPool", "GlobalMaxPool")]


def _adaptive(g: Graph, x: Any, size: Any, pool: str, whole: str) -> str:
    rank = g.rank(x) - 2
    sizes = _pairs(size, rank)
    if all(s == 1 for s in sizes):
        return g.op(whole, x)
    extents = [g.fixed(x, 2 + i) for i in range(rank)]
    if any(e % s for e, s in zip(extents, sizes)):
        raise NotImplementedError("windows of different sizes")
    window = [e // s for e, s in zip(extents, sizes)]
    return g.op(pool, x, kernel_shape=window, strides=window)


@_rule("aten.upsample_nearest1d.vec", "aten.upsample_nearest2d.vec", "aten.upsample_nearest2d.default",
       "aten.upsample_bilinear2d.vec", "aten.upsample_bilinear2d.default",
       "aten.upsample_linear1d.vec", "aten.upsample_bicubic2d.vec")
def _(g: Graph, x: Any, size: Any = None, *rest: Any) -> str:
    name = str(g.node.target)
    corners = "nearest" not in name and bool(rest and rest[0])
    before, after = g.shape(x)[2:], g.shape(g.node)[2:]
    scales = [1.0, 1.0] + [int(b) / int(a) for a, b in zip(before, after)]
    mode = "nearest" if "nearest" in name else "cubic" if "cubic" in name else "linear"
    where = "asymmetric" if mode == "nearest" else "align_corners" if corners else "half_pixel"
    options: Dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": where}
    if mode == "nearest":
        options["nearest_mode"] = "floor"
    if mode == "cubic":
        options["cubic_coeff_a"] = -0.75
    empty = ""
    return g.plan.op("Resize", g.name(x), empty, g.plan.constant(np.array(scales), parameter=False),
                     **options)


# ---- recurrences ----------------------------------------------------------------------------------------


def _reordered(array: Any, hidden: int, order: Sequence[int]) -> Any:
    return np.concatenate([array[i * hidden:(i + 1) * hidden] for i in order])


# Rows of the gates, as PyTorch has them, in the order of ONNX.
_GATES = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}


def _recurrence(g: Graph, kind: str, x: str, parameters: List[Any], biased: bool, layers: int,
                both: bool, **attributes: Any) -> Tuple[str, List[List[str]]]:
    """Over x [time, batch, width]; the outputs, and the last states of every layer."""
    each, directions, states = 4 if biased else 2, 2 if both else 1, []
    for layer in range(layers):
        mats: List[List[Any]] = [[], [], []]
        for direction in range(directions):
            at = (layer * directions + direction) * each
            own = [g.array(p) for p in parameters[at:at + each]]
            hidden = own[1].shape[1]
            order = _GATES[kind]
            biases = own[2:] if biased else [np.zeros(own[0].shape[0])] * 2
            for to, part in zip(mats, (own[0], own[1])):
                to.append(_reordered(part, hidden, order))
            mats[2].append(np.concatenate([_reordered(b, hidden, order) for b in biases]))
        constants = [g.plan.constant(np.stack(m)) for m in mats]
        outputs = 3 if kind == "LSTM" else 2
        y, *last = g.plan.ops(kind, x, *constants, outputs=outputs, hidden_size=int(hidden),
                              direction="bidirectional" if both else "forward", **attributes)
        states.append(last)
        turned = g.op("Transpose", y, perm=[0, 2, 1, 3])  # [time, batch, directions, hidden]
        x = g.op("Reshape", turned, g.ints(0, 0, directions * hidden))
    return x, states


def _run(g: Graph, kind: str, x: Any, parameters: List[Any], biased: bool, layers: int, both: bool,
         batch_first: bool, **attributes: Any) -> List[Any]:
    name = g.op("Transpose", x, perm=[1, 0, 2]) if batch_first else g.name(x)
    y, states = _recurrence(g, kind, name, parameters, biased, layers, both, **attributes)
    if batch_first:
        y = g.op("Transpose", y, perm=[1, 0, 2])
    # The last states are asked for by few modules, so they become nodes when they are.
    columns = [[s[i] for s in states] for i in range(len(states[0]))]
    last = [lambda c=c: c[0] if len(c) == 1 else g.op("Concat", *c, axis=0) for c in columns]
    return [y, *last]


def _starts_at_zero(g: Graph, states: Sequence[Any]) -> None:
    for state in states:
        if state in g.arrays and not g.arrays[state].any():
            continue
        if "zeros" not in str(getattr(state, "target", "")):
            raise NotImplementedError("a recurrence that does not start at zero")


@_rule("aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default")
def _(g: Graph, *rest: Any, **options: Any) -> str:
    return g.number(0)


@_rule("aten.lstm.input")
def _(g: Graph, x: Any, states: Sequence[Any], parameters: List[Any], biased: bool, layers: int,
      dropout: float, training: bool, both: bool, batch_first: bool) -> List[str]:
    _starts_at_zero(g, states)
    if any(g.array(p).shape[0] % 4 for p in parameters):
        raise NotImplementedError("an LSTM with projections")
    return _run(g, "LSTM", x, parameters, biased, layers, both, batch_first)


@_rule("aten.gru.input")
def _(g: Graph, x: Any, state: Any, parameters: List[Any], biased: bool, layers: int,
      dropout: float, training: bool, both: bool, batch_first: bool) -> List[str]:
    _starts_at_zero(g, [state])
    return _run(g, "GRU", x, parameters, biased, layers, both, batch_first, linear_before_reset=1)


@_rule("aten.rnn_tanh.input", "aten.rnn_relu.input")
def _(g: Graph, x: Any, state: Any, parameters: List[Any], biased: bool, layers: int,
      dropout: float, training: bool, both: bool, batch_first: bool) -> List[str]:
    _starts_at_zero(g, [state])
    function = "Relu" if "relu" in str(g.node.target) else "Tanh"
    return _run(g, "RNN", x, parameters, biased, layers, both, batch_first,
                activations=[function] * (2 if both else 1))
