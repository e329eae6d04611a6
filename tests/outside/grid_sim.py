"""Grids and meshes in float64, written from docs/mesh.md and docs/state.md, without code of Loom.

Every array has an axis of variants in front: copies of the network whose parameters differ by an
imaginary step. The imaginary part of a loss is then its derivative, exact to the last bits (Squire
and Trapp, 1998).
A value is [variants, streams, width] or [variants, streams, steps, width].
"""

import numpy as np

STEP = 1e-30  # of a derivative; no difference is taken, so it may be as small as one likes


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "linear": lambda x: x,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
}


def product(x, w):
    """x [V, ..., i] times w [V, o, i]."""
    return np.einsum("v...i,voi->v...o", x, w)


def along(vector, x):
    """A vector [V, o] shaped for values [V, ..., o]."""
    return vector.reshape(vector.shape[0], *([1] * (x.ndim - 2)), vector.shape[1])


class Cell:
    """One layer and those below it; `params` are the arrays of the whole network by path."""

    def __init__(self, spec, path):
        self.spec, self.path = spec, path
        self.children = [Cell(c, f"{path}/{i}") for i, c in enumerate(spec.get("children", []))]

    def run(self, call, x, second=None):
        return getattr(self, self.spec["type"].lower())(call, x, second)

    def p(self, call, name):
        return call.params[f"{self.path}/{name}"]

    def dense(self, call, x, _):
        y = product(x, self.p(call, "weight"))
        if self.spec.get("bias", True):
            y = y + along(self.p(call, "bias"), y)
        return ACTIVATIONS[self.spec.get("activation", "linear")](y)

    def rmsnorm(self, call, x, _):
        root = np.sqrt((x * x).mean(-1, keepdims=True) + self.spec["eps"])
        return x / root * along(self.p(call, "gamma"), x)

    def layernorm(self, call, x, _):
        centred = x - x.mean(-1, keepdims=True)
        root = np.sqrt((centred * centred).mean(-1, keepdims=True) + self.spec["eps"])
        return centred / root * along(self.p(call, "gamma"), x) + along(self.p(call, "beta"), x)

    def swiglu(self, call, x, _):
        gate = ACTIVATIONS["silu"](product(x, self.p(call, "gate")))
        return product(gate * product(x, self.p(call, "up")), self.p(call, "down"))

    def unary(self, call, x, _):
        return ACTIVATIONS[self.spec["function"]](x)

    def sequential(self, call, x, _):
        for child in self.children:
            x = child.run(call, x)
        return x

    def residual(self, call, x, second):
        return x + (self.sequential(call, x, None) if self.children else second)

    def input(self, call, x, _):
        return call.ports[self.spec["input"]]

    def graph(self, call, x, _):
        """Dense(x) + Input: the one graph that grid_draw.py makes."""
        return self.children[0].run(call, x) + self.children[1].run(call, x)

    def steps(self, call, x, gates, cell):
        """A recurrent layer: cell(products with the input, state) for every step."""
        wih, bias = self.p(call, "wih"), self.p(call, "bias")
        ahead = product(x, wih)
        ahead = ahead + along(bias, ahead)
        h = call.states.get(self.path)
        if h is None:
            h = np.zeros((*x.shape[:2], wih.shape[1] // gates), complex)
        out = []
        for t in range(x.shape[2]):
            h = cell(ahead[:, :, t], h)
            out.append(h)
        call.new_states[self.path] = h
        return np.stack(out, 2)

    def rnn(self, call, x, _):
        whh = self.p(call, "whh")
        return self.steps(call, x, 1, lambda a, h: np.tanh(a + product(h, whh)))

    def gru(self, call, x, _):
        whh, bias = self.p(call, "whh"), self.p(call, "bias_hh")

        def cell(a, h):
            b = product(h, whh)
            ar, az, an = np.split(a, 3, -1)
            br, bz, bn = np.split(b + along(bias, b), 3, -1)
            r, z = sigmoid(ar + br), sigmoid(az + bz)
            return (1 - z) * np.tanh(an + r * bn) + z * h

        return self.steps(call, x, 3, cell)


class Call:
    """The inputs of layers besides the main one. states: the start states of recurrent layers."""

    def __init__(self, params, ports, states=None):
        self.params, self.ports = params, ports
        self.states, self.new_states = states or {}, {}


def variants(params, names):
    """A copy of the parameters for each element of `names`, and the index of that element."""
    places = [(name, i) for name in names for i in range(params[name].size)]
    out = {
        name: np.repeat(values[None].astype(complex), max(len(places), 1), 0)
        for name, values in params.items()
    }
    for v, (name, i) in enumerate(places):
        out[name][v].reshape(-1)[i] += 1j * STEP
    return out, places


def descend(params, places, losses, rate):
    """One update of SGD, from the imaginary parts of the losses of all variants."""
    for (name, i), slope in zip(places, losses.imag / STEP):
        params[name].reshape(-1)[i] -= rate * slope


def without_slope(values):
    return {
        key: np.repeat(v[:1].real.astype(complex), v.shape[0], 0)
        for key, v in values.items()
        if v is not None
    }


def source_key(at):
    return tuple(at)


class Passes:
    """A network pass by pass: feedback links read the pass before, zeros in the first."""

    def __init__(self, net):
        self.cells = [(c, Cell(c, path_of(c["at"]))) for c in net["cells"] if not c.get("disabled")]
        self.widths = {source_key(c["at"]): c["out"] for c in net["cells"]}
        self.before = {}

    def run(self, params, x, ports):
        """x [V, B, ...]; the output of the last cell."""
        call, made, value, skipped = Call(params, ports), {}, x, x
        for spec, cell in self.cells:
            given, second = value, skipped
            link = spec.get("link")
            if link is not None:
                linked = made.get(source_key(link["from"]))
                if link["feedback"]:
                    linked = self.before.get(source_key(link["from"]))
                    if linked is None:
                        width = self.widths[source_key(link["from"])]
                        linked = np.zeros((*x.shape[:-1], width), complex)
                if is_bare(spec):
                    second = linked
                else:
                    given = linked
            value = cell.run(call, given, second)
            made[source_key(spec["at"])] = value
            skipped = given
        self.before = without_slope(made)
        return value


def path_of(at):
    return "({}, {}, {}, {})".format(*at)


def is_bare(spec):
    return spec["type"] == "Residual" and not spec.get("children")


class Mesh:
    """A network tick by tick. A source is ("port", name) or ("cell", place), and a delay."""

    def __init__(self, net, how):
        self.net, self.how = net, how
        self.cells = {source_key(c["at"]): c for c in net["cells"]}
        self.order = [source_key(c["at"]) for c in net["cells"]]
        self.layers = {at: Cell(c, path_of(at)) for at, c in self.cells.items()}
        self.first, self.second = {}, {}
        for k, at in enumerate(self.order):
            self.first[at] = (("port", "input") if k == 0 else ("cell", self.order[k - 1]), 1)
            self.resolve(at)
        for at in self.order:
            if is_bare(self.cells[at]) and at not in self.second:
                self.second[at] = self.aligned(at)

    def resolve(self, at):
        cell = self.cells[at]
        if cell["type"] == "Input" and not cell.get("disabled"):
            self.first[at] = (("port", cell["input"]), 1)
        if "link" in cell and not cell.get("disabled"):
            source = (("cell", source_key(cell["link"]["from"])), 1)
            (self.second if is_bare(cell) else self.first)[at] = source
        if at in self.how["links"]:
            self.first[at] = (self.how["links"][at], 1)
        if at in self.how["delays"]:
            self.first[at] = (self.first[at][0], self.how["delays"][at])

    def aligned(self, at):
        """The input of the layer before when it made the first input of `at`."""
        (kind, place), delay = self.first[at]
        while kind == "cell":
            before, more = self.first[place]
            enabled = not self.cells[place].get("disabled")
            (kind, place), delay = before, delay + more
            if enabled:
                break
        return (kind, place), delay

    def begin(self):
        """An empty past: values of cells and ports, tick by tick, and states."""
        return {"cells": [{}], "ports": [{}], "states": [{}]}

    def value(self, past, source, now):
        (kind, place), delay = source
        if kind == "port":
            tick = now - delay + 1
            return past["ports"][tick].get(place) if tick >= 1 else None
        tick = now - delay
        return past["cells"][tick].get(place) if tick >= 1 else None

    def shape(self, like, width):
        return np.zeros((*like.shape[:-1], width), complex)

    def tick(self, past, params, ports):
        """The next tick; `past` grows by it."""
        now = len(past["cells"])
        past["ports"].append(ports)
        before = past["states"][-1]
        states = before if self.how["carry"] else {}
        call, made = Call(params, ports, states), {}
        like = ports["input"]
        for at in self.order:
            cell = self.cells[at]
            x = self.value(past, self.first[at], now)
            if x is None:
                if not self.how["zero_fill"]:
                    continue
                x = self.shape(like, cell["in"])
            if cell.get("disabled"):
                made[at] = x
                continue
            second = None
            if is_bare(cell):
                second = self.value(past, self.second[at], now)
                second = self.shape(like, cell["in"]) if second is None else second
            made[at] = self.layers[at].run(call, x, second)
        past["cells"].append(made)
        past["states"].append({**before, **call.new_states})

    def fill(self, ports):
        """The first tick in which the last cell fires; None: never."""
        known, past = {}, self.begin()
        for now in range(1, 400):
            past["ports"].append(ports)
            made = {}
            for at in self.order:
                if self.how["zero_fill"] or self.value(past, self.first[at], now) is not None:
                    made[at] = True
                    known.setdefault(at, now)
            past["cells"].append(made)
        return known.get(self.order[-1])

    def constant(self, past, tick):
        """The state in `tick`, for other weights: nothing before it has a slope."""
        cut = lambda rows: [without_slope(row) for row in rows]
        return {
            "cells": cut(past["cells"][: tick + 1]),
            "ports": past["ports"][: tick + 1],
            "states": cut(past["states"][: tick + 1]),
        }
