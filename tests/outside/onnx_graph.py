"""Small ONNX graphs under construction, and ways to damage them: for onnx_ops.py and
onnx_idioms.py. A graph has one input, "x", whose first axis is the batch."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOATS = (np.float32, np.float64, np.float16)
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


def type_of(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


class Random:
    """numpy's generator with the methods that the generators of graphs use."""

    def __init__(self, seed):
        self.g = np.random.default_rng(seed)

    def chance(self, p):
        return bool(self.g.random() < p)

    def pick(self, items, p=None):
        return items[int(self.g.choice(len(items), p=p))]

    def whole(self, low, high):
        return int(self.g.integers(low, high + 1))

    def wholes(self, low, high, count):
        return [self.whole(low, high) for _ in range(count)]

    def values(self, shape, dtype=np.float32, scale=1.0):
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            return np.asarray(self.g.integers(0, 2, shape)).astype(np.bool_)
        if dtype.kind in "iu":
            low = 0 if dtype.kind == "u" else -3
            return np.asarray(self.g.integers(low, 9, shape)).astype(dtype)
        return np.asarray(self.g.normal(0, scale, shape)).astype(dtype)

    def order(self, count):
        return [int(i) for i in self.g.permutation(count)]


class Graph:
    def __init__(self, r, opset):
        self.r, self.opset = r, opset
        self.nodes, self.initializers = [], []
        self.x = self.output = None
        self.dims = []
        self.also_inputs = []
        self.count = 0

    def fresh(self, what="v"):
        self.count += 1
        return f"{what}{self.count}"

    def input(self, dims, dtype=np.float32, ids=0, scale=2.0):
        """The input, with values for one run. With `ids` they are integers below it."""
        r = self.r
        if ids > 0:
            self.x = np.asarray(r.g.integers(0, ids, dims)).astype(dtype)
        else:
            self.x = r.values(dims, dtype, scale)
        self.dims = list(dims)
        if dims and r.chance(0.6):
            self.dims[0] = "batch"
        return "x"

    def const(self, values, dtype=None):
        """A constant: an initializer, at times one that is an input too, or a node."""
        values = np.asarray(values, dtype)
        name = self.fresh("c")
        tensor = numpy_helper.from_array(values, name)
        if self.r.chance(0.2):
            self.nodes.append(helper.make_node("Constant", [], [name], name, value=tensor))
        else:
            self.initializers.append(tensor)
            if self.r.chance(0.05):
                self.also_inputs.append(tensor)
        return name

    def node(self, op, inputs, outputs=1, domain="", **attributes):
        """The name of the only output, or the names of all. An output of None is left out."""
        names = [self.fresh() for _ in range(outputs)] if isinstance(outputs, int) else [
            "" if wanted is None else self.fresh() for wanted in outputs]
        made = helper.make_node(op, inputs, names, self.fresh("n"), domain=domain)
        for key, value in attributes.items():
            if value is not None:
                kind = onnx.AttributeProto.INTS if value == [] else None
                made.attribute.append(helper.make_attribute(key, value, attr_type=kind))
        self.nodes.append(made)
        return names[0] if outputs == 1 else names

    def floats(self, name):
        return self.node("Cast", [name], to=TensorProto.FLOAT)

    def model(self):
        value = helper.make_tensor_value_info
        inputs = [value("x", type_of(self.x.dtype), self.dims)]
        inputs += [value(t.name, t.data_type, list(t.dims)) for t in self.also_inputs]
        if self.r.chance(0.1):
            inputs.reverse()
        outputs = [helper.make_tensor_value_info(self.output, self.out_type(inputs), None)]
        return self.wrapped(inputs, outputs)

    def wrapped(self, inputs, outputs):
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 9 if self.opset < 23 else 11
        return model

    def out_type(self, inputs):
        """The type of the graph's output; float if it is unknown."""
        bare = onnx.ValueInfoProto()
        bare.name = self.output
        try:
            known = onnx.shape_inference.infer_shapes(self.wrapped(inputs, [bare]))
        except Exception:  # pylint: disable=broad-except
            return TensorProto.FLOAT
        for info in list(known.graph.value_info) + list(known.graph.output):
            if info.name == self.output and info.type.tensor_type.elem_type:
                return info.type.tensor_type.elem_type
        return TensorProto.FLOAT


# ---- shapes --------------------------------------------------------------------------------------

BATCH = 3


def sample(r, least=1, most=3):
    return r.wholes(1, 5, r.whole(least, most))


def batch(r):
    return r.pick([BATCH, BATCH, 1, 2])


def kind_of(r, kind):
    """The type of a constant for an input: mostly the type of the input."""
    return r.pick(FLOATS + INTEGERS) if r.chance(0.04) else kind


def near_shape(r, dims):
    """A shape that broadcasts to dims, or nearly."""
    shape = [d if r.chance(0.5) else 1 for d in dims]
    if r.chance(0.5):
        shape = [1] * (len(dims) - 1) + dims[-1:]
    elif r.chance(0.3) and len(dims) > 1:
        shape = [1, dims[1]] + [1] * (len(dims) - 2)
    if r.chance(0.5) or not shape:
        while shape and shape[0] == 1 and r.chance(0.7):
            shape = shape[1:]
    if r.chance(0.3):
        shape = r.pick([[], [1], [1, 1]])
    return [1] * r.pick([0, 0, 0, 0, 0, 0, 1]) + shape


def regrouped(r, dims):
    """Another shape of as many values."""
    dims = list(dims)
    for _ in range(r.whole(1, 3)):
        at = r.whole(0, max(len(dims) - 2, 0))
        if len(dims) > 1 and r.chance(0.6):
            dims[at:at + 2] = [dims[at] * dims[at + 1]]
        elif dims:
            dims.insert(r.whole(0, len(dims)), 1)
    return dims


# ---- damage --------------------------------------------------------------------------------------


def damage_inputs(r, model):
    node = r.pick(model.graph.node)
    how = r.whole(0, 3)
    if not node.input:
        return
    at = r.whole(0, len(node.input) - 1)
    if how == 0:
        # It is omitted at the end: ONNX Runtime's Squeeze takes no empty name there.
        node.input[at] = ""
        while node.input and not node.input[-1]:
            del node.input[-1]
    elif how == 1:
        del node.input[at]
    elif how == 2:
        node.input.append(r.pick(list(node.input)))
    else:
        other = r.whole(0, len(node.input) - 1)
        node.input[at], node.input[other] = node.input[other], node.input[at]


def damage_attribute(r, model):
    nodes = [n for n in model.graph.node if n.attribute]
    if not nodes:
        node = r.pick(model.graph.node)
        node.attribute.append(helper.make_attribute(r.pick(["axis", "alpha", "to", "odd"]), 1))
        return
    node = r.pick(nodes)
    at = r.whole(0, len(node.attribute) - 1)
    a = node.attribute[at]
    if r.chance(0.15):
        del node.attribute[at]
    elif r.chance(0.15):
        a.name = r.pick(["odd", "axis", "axes", "epsilon", "strides"])
    elif a.type == onnx.AttributeProto.INT:
        if r.chance(0.15):
            node.attribute[at].CopyFrom(helper.make_attribute(a.name, float(a.i)))
        else:
            a.i = r.pick([a.i + 1, a.i - 1, 0, 1, -1, 2, 7, -a.i])
    elif a.type == onnx.AttributeProto.FLOAT:
        a.f = float(r.pick([a.f * 2, -a.f, 0.0, 1.0, 0.5, 1e-3]))
    elif a.type == onnx.AttributeProto.INTS:
        how = r.whole(0, 3)
        if how == 0:
            a.ints.append(r.whole(-1, 3))
        elif how == 1 and a.ints:
            del a.ints[-1]
        elif a.ints:
            i = r.whole(0, len(a.ints) - 1)
            a.ints[i] = r.pick([a.ints[i] + 1, a.ints[i] - 1, 0, 1, 2, 5])
    elif a.type == onnx.AttributeProto.STRING:
        a.s = r.pick([b"odd", b"VALID", b"SAME_UPPER", b"reverse", b"tanh", b""])


def damage_constant(r, model):
    if not model.graph.initializer:
        return
    t = r.pick(model.graph.initializer)
    values = numpy_helper.to_array(t)
    how = r.whole(0, 5)
    if how == 0:
        values = values[None]
    elif how == 1:
        values = values.T
    elif how == 2:
        values = values.reshape(-1)
    elif how == 3 and values.ndim and values.shape[0] > 1:
        values = values[:-1]
    elif how == 4:
        values = values.astype(r.pick(FLOATS + (np.int64, np.int32)))
    elif how == 5:
        values = values[..., None]
    t.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), t.name))


def damage_model(r, model):
    how = r.whole(0, 4)
    if how == 0:
        model.opset_import[0].version = r.whole(15, 24)
    elif how == 1:
        node = r.pick(model.graph.node)
        node.output.append("more")
    elif how == 2:
        model.graph.output[0].type.tensor_type.elem_type = r.pick(
            [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BOOL])
    elif how == 3:
        model.graph.node.reverse()
    else:
        r.pick(model.graph.node).domain = r.pick(["ai.onnx", "com.microsoft", "odd"])


def damage(r, model):
    """Changes one part of the model; the result is valid or not."""
    if not model.graph.node:
        return
    r.pick([damage_inputs, damage_attribute, damage_constant, damage_model],
           p=[0.25, 0.4, 0.25, 0.1])(r, model)
