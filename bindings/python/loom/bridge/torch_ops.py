"""Rules for PyTorch's products, norms, functions of single numbers and attention."""

import math
import warnings
from typing import Any, Optional, Sequence

import numpy as np

from .torch_graph import Graph, rule
from .torch_logic import real

# ---- products ------------------------------------------------------------------------------------


@rule("aten.linear.default")
def _(g: Graph, x: Any, weight: Any, bias: Any = None) -> str:
    y = g.op("MatMul", x, g.op("Transpose", weight, perm=[1, 0]))
    return y if bias is None else g.op("Add", y, bias)


@rule("aten.matmul.default", "aten.bmm.default", "aten.mm.default")
def _(g: Graph, a: Any, b: Any) -> str:
    return g.op("MatMul", a, b)


@rule("aten.addmm.default")
def _(g: Graph, bias: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> str:
    if (beta, alpha) != (1, 1):
        raise NotImplementedError("beta and alpha other than 1")
    return g.op("Add", g.op("MatMul", a, b), bias)


@rule("aten.baddbmm.default")
def _(g: Graph, added: Any, a: Any, b: Any, *, beta: float = 1, alpha: float = 1) -> str:
    product = g.op("Mul", g.op("MatMul", a, b), g.number(alpha))
    return g.op("Add", g.op("Mul", added, g.number(beta)), product)


@rule("aten.einsum.default")
def _(g: Graph, equation: str, operands: Sequence[Any], path: Any = None) -> str:
    return g.op("Einsum", *operands, equation=equation)


@rule("aten.embedding.default")
def _(
    g: Graph,
    weight: Any,
    ids: Any,
    padding_idx: int = -1,
    scale_grad: bool = False,
    sparse: bool = False,
) -> str:
    if padding_idx >= 0 and weight in g.arrays and g.trains(weight):
        warnings.warn(
            f"{g.plan.origin or 'the model'}: row {padding_idx} (padding_idx) trains here, and not "
            "in PyTorch; freeze the table, or leave those ids out of the samples",
            stacklevel=2,
        )
    if ids in g.arrays:
        return _rows_of(g, weight, g.array(ids))
    return g.op("Gather", weight, ids, axis=0)


def _rows_of(g: Graph, weight: Any, ids: Any) -> str:
    """Rows of a table by ids that depend on no input: the table, or a product that picks them."""
    rows = [int(i) for i in np.ravel(ids)]
    count = g.fixed(weight, 0)
    if rows == list(range(count)):
        y = g.name(weight)
    else:
        picked = np.zeros((len(rows), count))
        picked[np.arange(len(rows)), rows] = 1
        y = g.op("MatMul", g.plan.constant(picked, parameter=False), weight)
    return g.shaped_as_output(y)


@rule("aten.linalg_vector_norm.default")
def _(
    g: Graph, x: Any, order: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> str:
    kinds = {1.0: "ReduceL1", 2.0: "ReduceL2"}
    if float(order) not in kinds:
        raise NotImplementedError(f"a norm of order {order}; 1 and 2 are read")
    axes = range(g.rank(x)) if dim is None else [dim] if isinstance(dim, int) else dim
    return g.op(kinds[float(order)], x, g.ints(*(int(a) for a in axes)), keepdims=int(keepdim))


# ---- normalization -------------------------------------------------------------------------------


@rule("aten.batch_norm.default", "aten._native_batch_norm_legit_no_training.default")
def _(g: Graph, x: Any, weight: Any, bias: Any, mean: Any, var: Any, *rest: Any) -> Any:
    legit = "no_training" in str(g.node.target)
    training, eps = (False, rest[1]) if legit else (rest[0], rest[2])
    if training or mean is None:
        raise NotImplementedError("statistics of the batch are used in inference too")
    width = len(g.array(mean))
    scale = np.ones(width) if weight is None else g.array(weight)
    shift = np.zeros(width) if bias is None else g.array(bias)
    constants = [g.plan.constant(v) for v in (scale, shift, g.array(mean), g.array(var))]
    # ONNX weighs the running value, PyTorch the batch; None (a mean over all batches) has no form.
    momentum = rest[0] if legit else rest[1]
    options = {"epsilon": float(eps), "momentum": 1.0 - float(momentum)}
    y = g.op("BatchNormalization", x, *constants, **options)
    return [y] if legit else y


@rule("aten.layer_norm.default")
def _(
    g: Graph,
    x: Any,
    shape: Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn: bool = True,
) -> str:
    scale = np.ones(shape) if weight is None else g.array(weight)
    inputs = [g.name(x), g.plan.constant(scale, parameter=weight is not None)]
    if bias is not None:
        inputs.append(g.plan.constant(g.array(bias)))
    return g.plan.op("LayerNormalization", *inputs, axis=-len(shape), epsilon=float(eps))


@rule("aten.rms_norm.default", "aten._fused_rms_norm.default")
def _(
    g: Graph, x: Any, shape: Sequence[int], weight: Any = None, eps: Optional[float] = None
) -> str:
    eps = float(np.finfo(np.float32).eps) if eps is None else eps
    axes = g.ints(*range(-len(shape), 0))
    mean = g.op("ReduceMean", g.op("Mul", x, x), axes, keepdims=1)
    y = g.op("Div", x, g.op("Sqrt", g.op("Add", mean, g.number(eps))))
    return y if weight is None else g.op("Mul", y, weight)


@rule("aten.group_norm.default")
def _(
    g: Graph,
    x: Any,
    groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn: bool = True,
) -> str:
    shape = g.shape(g.node)
    parts = [d if isinstance(d, int) else -1 for d in shape[:1]] + [int(groups), -1]
    if parts.count(-1) > 1:
        parts[2] = math.prod(int(d) for d in shape[1:]) // int(groups)
    rows = g.op("Reshape", x, g.ints(*parts))
    ones, zeros = g.plan.constant(np.ones(groups)), g.plan.constant(np.zeros(groups))
    y = g.op("InstanceNormalization", rows, ones, zeros, epsilon=float(eps))
    return _affine(g, g.shaped_as_output(y), weight, bias)


@rule("aten.instance_norm.default")
def _(
    g: Graph,
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn: bool,
) -> str:
    if not use_input_stats:
        raise NotImplementedError("running statistics of an instance norm")
    width = g.fixed(x, 1)
    scale = np.ones(width) if weight is None else g.array(weight)
    shift = np.zeros(width) if bias is None else g.array(bias)
    return g.op(
        "InstanceNormalization",
        x,
        g.plan.constant(scale),
        g.plan.constant(shift),
        epsilon=float(eps),
    )


def _affine(g: Graph, y: str, weight: Any, bias: Any) -> str:
    """A scale and a shift of each channel, the axis 1."""
    ones = [1] * (g.rank(g.node) - 2)
    if weight is not None:
        y = g.op("Mul", y, g.plan.constant(g.array(weight).reshape(-1, *ones)))
    if bias is not None:
        y = g.op("Add", y, g.plan.constant(g.array(bias).reshape(-1, *ones)))
    return y


# ---- element by element --------------------------------------------------------------------------

_UNARY = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "exp": "Exp",
    "log": "Log",
    "neg": "Neg",
    "sqrt": "Sqrt",
    "erf": "Erf",
    "floor": "Floor",
    "ceil": "Ceil",
    "sign": "Sign",
    "reciprocal": "Reciprocal",
    "mish": "Mish",
    "softsign": "Softsign",
    "round": "Round",
    "sin": "Sin",
    "cos": "Cos",
}
for _torch_name, _onnx_name in _UNARY.items():

    @rule(f"aten.{_torch_name}.default", f"aten.{_torch_name}_.default")
    def _(g: Graph, x: Any, _name: str = _onnx_name) -> str:
        return g.op(_name, x)


@rule("aten.silu.default", "aten.silu_.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Mul", x, g.op("Sigmoid", x))


@rule("aten.gelu.default")
def _(g: Graph, x: Any, approximate: str = "none") -> str:
    return g.op("Gelu", x, approximate=approximate)


@rule("aten.square.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Mul", x, x)


@rule("aten.leaky_relu.default", "aten.leaky_relu_.default")
def _(g: Graph, x: Any, slope: float = 0.01) -> str:
    return g.op("LeakyRelu", x, alpha=float(slope))


@rule("aten.elu.default", "aten.elu_.default")
def _(g: Graph, x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> str:
    if (scale, input_scale) != (1, 1):
        raise NotImplementedError("an ELU with scales")
    return g.op("Elu", x, alpha=float(alpha))


@rule("aten.selu.default", "aten.selu_.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Selu", x)


@rule("aten.celu.default")
def _(g: Graph, x: Any, alpha: float = 1) -> str:
    return g.op("Celu", x, alpha=float(alpha))


@rule("aten.softplus.default")
def _(g: Graph, x: Any, beta: float = 1, threshold: float = 20) -> str:
    if beta != 1:
        scaled = g.op("Softplus", g.op("Mul", x, g.number(beta)))
        return g.op("Mul", scaled, g.number(1 / beta))
    return g.op("Softplus", x)


@rule("aten.prelu.default")
def _(g: Graph, x: Any, weight: Any) -> str:
    slope = g.array(weight)
    if slope.size > 1:
        slope = slope.reshape(-1, *[1] * (g.rank(x) - 2))
    return g.op("PRelu", x, g.plan.constant(slope))


@rule("aten.glu.default")
def _(g: Graph, x: Any, dim: int = -1) -> str:
    a, b = g.plan.ops("Split", g.name(x), outputs=2, axis=int(dim), num_outputs=2)
    return g.op("Mul", a, g.op("Sigmoid", b))


@rule("aten.hardsigmoid.default", "aten.hardsigmoid_.default")
def _(g: Graph, x: Any) -> str:
    return g.op("HardSigmoid", x, alpha=1.0 / 6, beta=0.5)


@rule("aten.hardswish.default", "aten.hardswish_.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Mul", x, g.op("HardSigmoid", x, alpha=1.0 / 6, beta=0.5))


@rule("aten.relu6.default", "aten.relu6_.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Clip", x, g.number(0), g.number(6))


@rule("aten.hardtanh.default", "aten.hardtanh_.default")
def _(g: Graph, x: Any, low: float = -1, high: float = 1) -> str:
    return g.op("Clip", x, g.number(low), g.number(high))


@rule("aten.clamp.default", "aten.clamp_min.default", "aten.clamp_max.default")
def _(g: Graph, x: Any, low: Any = None, high: Any = None) -> str:
    if "clamp_max" in str(g.node.target):
        low, high = None, low
    largest = float(np.finfo(np.float32).max)
    return g.op(
        "Clip",
        x,
        g.number(-largest if low is None else low),
        g.number(largest if high is None else high),
    )


@rule("aten.rsqrt.default", "aten.rsqrt_.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Reciprocal", g.op("Sqrt", x))


@rule("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor")
def _(g: Graph, x: Any, exponent: Any) -> str:
    return g.op("Pow", x, exponent)


@rule("aten.log1p.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Log", g.op("Add", x, g.number(1)))


@rule("aten.log_sigmoid.default")
def _(g: Graph, x: Any) -> str:
    return g.op("Neg", g.op("Softplus", g.op("Neg", x)))


@rule("aten.addcmul.default")
def _(g: Graph, x: Any, a: Any, b: Any, *, value: float = 1) -> str:
    return g.op("Add", x, g.op("Mul", g.op("Mul", a, b), g.number(value)))


@rule("aten.lerp.Scalar", "aten.lerp.Tensor")
def _(g: Graph, a: Any, b: Any, weight: Any) -> str:
    return g.op("Add", a, g.op("Mul", g.op("Sub", b, a), weight))


_BINARY = {
    "add": "Add",
    "sub": "Sub",
    "subtract": "Sub",
    "mul": "Mul",
    "multiply": "Mul",
    "div": "Div",
    "divide": "Div",
    "maximum": "Max",
    "minimum": "Min",
}
for _torch_name, _onnx_name in _BINARY.items():

    @rule(
        *(f"aten.{_torch_name}{u}.{k}" for u in ("", "_") for k in ("Tensor", "Scalar", "default"))
    )
    def _(g: Graph, a: Any, b: Any, _name: str = _onnx_name, **options: Any) -> str:
        if options.get("rounding_mode") is not None:
            raise NotImplementedError("a division that rounds")
        alpha = options.get("alpha", 1)
        a, b = real(g, a), real(g, b)
        return g.op(_name, a, b if alpha == 1 else g.op("Mul", b, g.number(alpha)))


@rule("aten.rsub.Scalar", "aten.rsub.Tensor")
def _(g: Graph, a: Any, b: Any, alpha: float = 1) -> str:
    return g.op("Sub", b, a if alpha == 1 else g.op("Mul", a, g.number(alpha)))


# ---- softmax, attention --------------------------------------------------------------------------


@rule("aten.softmax.int", "aten._softmax.default")
def _(g: Graph, x: Any, dim: int, half_to_float: Any = None) -> str:
    return g.op("Softmax", x, axis=int(dim))


@rule("aten.log_softmax.int", "aten._log_softmax.default")
def _(g: Graph, x: Any, dim: int, half_to_float: Any = None) -> str:
    return g.op("LogSoftmax", x, axis=int(dim))


def _untrained(g: Graph, values: Any) -> str:
    """Numbers that are not weights, such as a mask: only initializers are trained."""
    return g.op("Identity", g.plan.constant(values, parameter=False))


@rule("aten.scaled_dot_product_attention.default")
def _(
    g: Graph,
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
) -> str:
    if enable_gqa:
        raise NotImplementedError("groups of heads inside of the attention")
    rank = g.rank(k)
    width = g.fixed(q, -1)
    factor = 1 / math.sqrt(width) if scale is None else scale
    turned = g.op("Transpose", k, perm=[*range(rank - 2), rank - 1, rank - 2])
    scores = g.op("Mul", g.op("MatMul", q, turned), g.number(factor))
    if causal:
        low = np.triu(np.full((g.fixed(q, -2), g.fixed(k, -2)), -1e30), 1)
        scores = g.op("Add", scores, _untrained(g, low))
    if mask is not None:
        given = g.array(mask)
        values = np.where(given, 0.0, -1e30) if given.dtype == bool else np.maximum(given, -1e30)
        scores = g.op("Add", scores, _untrained(g, values))
    return g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
