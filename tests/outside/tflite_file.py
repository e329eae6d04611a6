"""Writes TFLite files for tests: tensors, operators and their options, by the classes that the
package ai-edge-litert has for TFLite's schema."""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

TYPES = {
    "float32": 0,
    "float16": 1,
    "int32": 2,
    "uint8": 3,
    "int64": 4,
    "bool": 6,
    "int16": 7,
    "int8": 9,
}
CODES = {k: v for k, v in vars(schema.BuiltinOperator).items() if not k.startswith("_")}

# Operators that came with a later version; for all others the first will do.
VERSIONS = {CODES["BROADCAST_TO"]: 2}


class Steps:
    """A scale and a zero point, or several along an axis."""

    def __init__(self, scale, zero=0, axis=0):
        self.scale, self.axis = np.atleast_1d(np.asarray(scale, np.float32)), axis
        self.zero = np.resize(np.atleast_1d(np.asarray(zero, np.int64)), self.scale.shape)


class Model:
    def __init__(self):
        self.tensors, self.buffers, self.ops, self.codes = [], [schema.BufferT()], [], []
        self.buffers[0].data = []
        self.inputs, self.outputs, self.given = [], [], {}

    def shape(self, i):
        return list(self.tensors[i].shape)

    def tensor(self, shape, kind="float32", name=None, steps=None, variable=False):
        t = schema.TensorT()
        t.shape, t.type = [int(d) for d in shape], TYPES[kind]
        t.name = (name or f"t{len(self.tensors)}").encode()
        t.buffer, t.isVariable, t.hasRank = 0, variable, True
        if steps is not None:
            q = schema.QuantizationParametersT()
            q.scale, q.zeroPoint, q.quantizedDimension = (
                list(steps.scale),
                list(steps.zero),
                steps.axis,
            )
            t.quantization = q
        self.tensors.append(t)
        return len(self.tensors) - 1

    def constant(self, values, kind=None, steps=None):
        values = np.asarray(values, kind)
        i = self.tensor(values.shape, str(values.dtype), steps=steps)
        data = schema.BufferT()
        data.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        self.buffers.append(data)
        self.tensors[i].buffer = len(self.buffers) - 1
        return i

    def input(self, values, name=None, steps=None):
        i = self.tensor(values.shape, str(values.dtype), name or f"x{len(self.inputs)}", steps)
        self.inputs.append(i)
        self.given[self.tensors[i].name.decode()] = values
        return i

    def op(self, name, inputs, shapes, options=None, kind="float32", steps=None, custom=None):
        """Adds an operator; returns its outputs, one for each shape (a single one if `shapes` is
        not a list of them)."""
        code = CODES[name]
        if (code, custom) not in self.codes:
            self.codes.append((code, custom))
        one = not shapes or not isinstance(shapes[0], (list, tuple))
        kinds = kind if isinstance(kind, (list, tuple)) else [kind] * (1 if one else len(shapes))
        made = [self.tensor(s, k, steps=steps) for s, k in zip([shapes] if one else shapes, kinds)]
        o = schema.OperatorT()
        o.opcodeIndex, o.inputs, o.outputs = self.codes.index((code, custom)), list(inputs), made
        if options is not None:
            kind_of, fields = options
            table = getattr(schema, kind_of + "T")()
            for field, value in fields.items():
                if not hasattr(table, field):
                    raise ValueError(f"{kind_of} has no {field}")
                setattr(table, field, value)
            o.builtinOptions = table
            o.builtinOptionsType = getattr(schema.BuiltinOptions, kind_of)
        self.ops.append(o)
        return made[0] if one else made

    def bytes(self):
        m = schema.ModelT()
        m.version, m.description, m.buffers, m.operatorCodes = (
            3,
            b"made by a test",
            self.buffers,
            [],
        )
        for code, custom in self.codes:
            c = schema.OperatorCodeT()
            c.builtinCode, c.deprecatedBuiltinCode, c.version = (
                code,
                min(code, 127),
                VERSIONS.get(code, 1),
            )
            c.customCode = custom
            m.operatorCodes.append(c)
        g = schema.SubGraphT()
        g.tensors, g.inputs, g.outputs, g.operators = (
            self.tensors,
            self.inputs,
            self.outputs,
            self.ops,
        )
        g.name = b"main"
        m.subgraphs = [g]
        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(m.Pack(builder), b"TFL3")
        return bytes(builder.Output())
