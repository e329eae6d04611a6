"""Rules for PyTorch's recurrences: LSTM, GRU and RNN of any depth, in both directions."""

from typing import Any, List, Sequence, Tuple

import numpy as np

from .torch_graph import Graph, rule

# ---- recurrences ---------------------------------------------------------------------------------


def _reordered(array: Any, hidden: int, order: Sequence[int]) -> Any:
    return np.concatenate([array[i * hidden : (i + 1) * hidden] for i in order])


# Rows of the gates, as PyTorch has them, in the order of ONNX.
_GATES = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}


def _recurrence(
    g: Graph,
    kind: str,
    x: str,
    parameters: List[Any],
    biased: bool,
    layers: int,
    both: bool,
    begin: Sequence[Any],
    **attributes: Any,
) -> Tuple[str, List[List[str]]]:
    """Over x [time, batch, width]; the outputs, and the last states of every layer.

    begin: the states that all layers begin with, [layers * directions, batch, hidden]; none: zero.
    """
    each, directions, states, hidden = 4 if biased else 2, 2 if both else 1, [], 0
    for layer in range(layers):
        mats: List[List[Any]] = [[], [], []]
        sources: List[List[Any]] = [[], [], []]
        halves: List[str] = []  # where one bias of the two trains
        for direction in range(directions):
            at = (layer * directions + direction) * each
            own = [g.array(p) for p in parameters[at : at + each]]
            hidden = own[1].shape[1]
            order = _GATES[kind]
            biases = own[2:] if biased else [np.zeros(own[0].shape[0])] * 2
            for to, part in zip(mats, (own[0], own[1])):
                to.append(_reordered(part, hidden, order))
            nodes = parameters[at : at + each]
            for to, source in zip(sources, (nodes[:1], nodes[1:2], nodes[2:])):
                to.extend(source)
            mats[2].append(np.concatenate([_reordered(b, hidden, order) for b in biases]))
            if biased and not both and g.trains(nodes[2]) != g.trains(nodes[3]):
                halves = [
                    g.plan.constant(_reordered(b, hidden, order)[None], places=g.places(node))
                    for b, node in zip(biases, nodes[2:])
                ]
        constants = [
            g.plan.constant(np.stack(m), places=[at for n in names for at in g.places(n)])
            for m, names in zip(mats, sources)
            if m is not mats[2] or (biased and not halves)  # zeros are not biases
        ]
        if halves:
            constants.append(g.op("Concat", *halves, axis=1))
        if begin:  # after the biases and the lengths
            constants += [""] * (4 - len(constants))
            constants += [_rows(g, state, layer * directions, directions) for state in begin]
        outputs = 3 if kind == "LSTM" else 2
        y, *last = g.plan.ops(
            kind,
            x,
            *constants,
            outputs=outputs,
            hidden_size=int(hidden),
            direction="bidirectional" if both else "forward",
            **attributes,
        )
        states.append(last)
        turned = g.op("Transpose", y, perm=[0, 2, 1, 3])  # [time, batch, directions, hidden]
        x = g.op("Reshape", turned, g.ints(0, 0, directions * hidden))
    return x, states


def _rows(g: Graph, state: Any, first: int, count: int) -> str:
    if g.shape(state)[0] == count:
        return g.name(state)
    return g.op("Slice", state, g.ints(first), g.ints(first + count), g.ints(0))


def _run(
    g: Graph,
    kind: str,
    x: Any,
    states: Sequence[Any],
    parameters: List[Any],
    biased: bool,
    layers: int,
    both: bool,
    batch_first: bool,
    **attributes: Any,
) -> List[Any]:
    name = g.op("Transpose", x, perm=[1, 0, 2]) if batch_first else g.name(x)
    begin = [] if _starts_at_zero(g, states) else states
    y, states = _recurrence(g, kind, name, parameters, biased, layers, both, begin, **attributes)
    if batch_first:
        y = g.op("Transpose", y, perm=[1, 0, 2])
    # The last states are asked for by few modules, so they become nodes when they are.
    columns = [[s[i] for s in states] for i in range(len(states[0]))]
    last = [lambda c=c: c[0] if len(c) == 1 else g.op("Concat", *c, axis=0) for c in columns]
    return [y, *last]


def _starts_at_zero(g: Graph, states: Sequence[Any]) -> bool:
    """A parameter that is zero trains; a tensor of zeros does not."""

    def zero(state: Any) -> bool:
        if state in g.arrays:
            return not g.arrays[state].any() and not g.trains(state)
        return "zeros" in str(getattr(state, "target", ""))

    return all(zero(state) for state in states)


@rule("aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default")
def _(g: Graph, *rest: Any, **options: Any) -> str:
    return g.number(0)


@rule("aten.lstm.input")
def _(
    g: Graph,
    x: Any,
    states: Sequence[Any],
    parameters: List[Any],
    biased: bool,
    layers: int,
    dropout: float,
    training: bool,
    both: bool,
    batch_first: bool,
) -> List[str]:
    if any(g.array(p).shape[0] % 4 for p in parameters):
        raise NotImplementedError("an LSTM with projections")
    return _run(g, "LSTM", x, states, parameters, biased, layers, both, batch_first)


@rule("aten.gru.input")
def _(
    g: Graph,
    x: Any,
    state: Any,
    parameters: List[Any],
    biased: bool,
    layers: int,
    dropout: float,
    training: bool,
    both: bool,
    batch_first: bool,
) -> List[str]:
    more = (parameters, biased, layers, both, batch_first)
    return _run(g, "GRU", x, [state], *more, linear_before_reset=1)


@rule("aten.rnn_tanh.input", "aten.rnn_relu.input")
def _(
    g: Graph,
    x: Any,
    state: Any,
    parameters: List[Any],
    biased: bool,
    layers: int,
    dropout: float,
    training: bool,
    both: bool,
    batch_first: bool,
) -> List[str]:
    function = "Relu" if "relu" in str(g.node.target) else "Tanh"
    return _run(
        g,
        "RNN",
        x,
        [state],
        parameters,
        biased,
        layers,
        both,
        batch_first,
        activations=[function] * (2 if both else 1),
    )
