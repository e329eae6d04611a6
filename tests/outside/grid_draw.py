"""Random grids for grid_check.py: cells of different kinds at random positions, links, feedback of
any width, disabled cells, further inputs, and the parts of a mesh: links, delays, ports."""

import numpy as np

ACTIVATIONS = ["linear", "tanh", "sigmoid", "silu"]
FIXED = ["Dense", "Dense", "Dense", "RMSNorm", "LayerNorm", "SwiGLU", "Sequential", "Residual"]
STEPPED = ["RNN", "GRU"]


class Draw:
    def __init__(self, seed):
        self.random = np.random.default_rng([37, seed])
        self.steps = int(self.random.integers(2, 4)) if self.chance(0.4) else 0
        self.cells, self.inputs, self.feedback = [], {}, 0

    def chance(self, share):
        return bool(self.random.random() < share)

    def upto(self, most):
        return int(self.random.integers(1, most + 1))

    def one_of(self, values):
        return values[int(self.random.integers(len(values)))]

    def width(self, before):
        """The width of a feedback link: never all values of a sample, as a Dense takes those."""
        while True:
            w = self.upto(6)
            if not self.steps or w != before * self.steps:
                return w

    def dense(self, wide, out):
        return {
            "type": "Dense",
            "in": wide,
            "out": out,
            "bias": self.chance(0.8),
            "activation": self.one_of(ACTIVATIONS),
        }

    def layer(self, wide, out=None):
        """A layer that takes only this width, and gives `out` if it is set."""
        kinds = FIXED + (STEPPED * 2 if self.steps else [])
        kind = self.one_of(
            kinds if out is None else [k for k in kinds if k in ("Dense", "RNN", "GRU")]
        )
        out = out or self.width(wide)
        if kind == "Dense":
            return self.dense(wide, out), out
        if kind in STEPPED:
            return {"type": kind, "in": wide, "hidden": out}, out
        if kind in ("RMSNorm", "LayerNorm"):
            return {"type": kind, "width": wide, "eps": self.one_of([1e-5, 1e-2])}, wide
        if kind == "SwiGLU":
            return {"type": kind, "width": wide, "inner": self.upto(5)}, wide
        inner = self.width(wide)
        if kind == "Residual":
            return {
                "type": kind,
                "children": [self.dense(wide, inner), self.dense(inner, wide)],
            }, wide
        norm = {"type": "RMSNorm", "width": inner, "eps": 1e-3}
        return {"type": kind, "children": [self.dense(wide, inner), norm]}, inner

    def name_input(self, wide):
        same = [name for name, w in self.inputs.items() if w == wide]
        if same and self.chance(0.3):
            return self.one_of(same)
        name = f"sense{len(self.inputs)}"
        self.inputs[name] = wide
        return name

    def input_of(self, wide):
        shape = [self.steps, wide] if self.steps else [wide]
        return {"type": "Input", "input": self.name_input(wide), "shape": shape}

    def graph(self, wide):
        out = self.width(wide)
        return {"type": "Graph", "children": [self.dense(wide, out), self.input_of(out)]}, out

    def add(self):
        """One more cell, which reads the one before it, an earlier or a later one."""
        k = len(self.cells)
        before = self.cells[-1]["out"] if k else self.wide
        if k and self.chance(0.12):
            wide = self.width(before)
            self.cells.append({**self.input_of(wide), "in": before, "out": wide})
            return
        last = self.cells[-1] if k else {}
        adds = k and last["in"] == before and last["type"] != "Input" and not last.get("disabled")
        if adds and self.chance(0.2):
            self.cells.append({"type": "Residual", "in": before, "out": before})
            return
        wide, link = before, {}
        if self.chance(0.4):
            link, wide = {"awaits": True}, self.width(before)
        elif k > 1 and self.chance(0.3):
            j = self.one_of([j for j in range(k - 1) if not self.cells[j].get("disabled")])
            link, wide = {"reads": j, "feedback": False}, self.cells[j]["out"]
        spec, out = self.graph(wide) if not link and self.chance(0.15) else self.layer(wide)
        if not link and out == wide and k and self.chance(0.15):
            spec["disabled"] = True
        self.cells.append({**spec, **link, "in": wide, "out": out})

    def meet(self):
        """Each reader that awaits feedback gets a cell of its width, a new one if needed."""
        for k, cell in enumerate(list(self.cells)):
            if not cell.pop("awaits", False):
                continue
            fits = [
                j
                for j, c in enumerate(self.cells)
                if c["out"] == cell["in"] and not c.get("disabled")
            ]
            if not fits:
                before = self.cells[-1]["out"]
                spec, out = self.layer(before, cell["in"])
                self.cells.append({**spec, "in": before, "out": out})
                fits = [len(self.cells) - 1]
            cell["reads"], cell["feedback"] = self.one_of(fits), True
            self.feedback += 1

    def place(self):
        size = [self.upto(3) for _ in range(4)]
        while np.prod(size) < len(self.cells):
            size[self.upto(4) - 1] += 1
        spots = np.sort(self.random.choice(int(np.prod(size)), len(self.cells), replace=False))
        for cell, spot in zip(self.cells, spots):
            cell["at"] = [int(i) for i in np.unravel_index(spot, size)]
        for cell in self.cells:
            if "reads" in cell:
                cell["link"] = {
                    "from": self.cells[cell.pop("reads")]["at"],
                    "feedback": cell.pop("feedback"),
                }
        return size

    def net(self):
        while not self.feedback:
            self.cells, self.inputs, self.wide = [], {}, self.upto(5)
            for _ in range(1 + self.upto(5)):
                self.add()
            self.cells[0].pop("disabled", None)
            self.meet()
        if self.cells[-1].get("disabled") or self.cells[-1]["type"] in ("Input", "Graph"):
            before = self.cells[-1]["out"]
            self.cells.append(self.dense(before, self.upto(4)))
        size = self.place()
        shape = [self.steps, self.wide] if self.steps else [self.wide]
        return {"grid": size, "input": shape, "cells": self.cells}

    def how(self, net):
        """The parts of a mesh: links to cells of equal width, ports, delays, and firing rules."""
        links, delays, ports = {}, {}, {}
        cells = net["cells"]
        for cell in cells:
            at = tuple(cell["at"])
            plain = not cell.get("disabled") and cell["type"] != "Input"
            fits = [c for c in cells if c["out"] == cell["in"] and not c.get("disabled")]
            bare = cell["type"] == "Residual" and not cell.get("children")
            if plain and fits and not bare and self.chance(0.15):
                links[at] = ("cell", tuple(self.one_of(fits)["at"]))
            elif plain and self.chance(0.15):
                name = f"port{len(ports)}"
                ports[name] = cell["in"]
                links[at] = ("port", name)
            if self.chance(0.25):
                delays[at] = self.upto(4)
        return {
            "links": links,
            "delays": delays,
            "ports": ports,
            "carry": self.chance(0.5),
            "zero_fill": self.chance(0.3),
        }


def describe(net):
    """The description that Loom reads."""
    drop = ("in", "out")
    cells = []
    for cell in net["cells"]:
        own = {"Dense": drop, "RNN": drop[:1], "GRU": drop[:1]}.get(cell["type"], ())
        cells.append({k: v for k, v in cell.items() if k not in drop or k in own})
        if cell["type"] == "Graph":
            named = zip(cell["children"], ("inner", "given"))
            nodes = [{"name": name, "from": "input", **child} for child, name in named]
            nodes.append({"from": ["inner", "given"], "type": "Binary", "function": "add"})
            cells[-1] = {k: v for k, v in cells[-1].items() if k != "children"}
            cells[-1]["nodes"] = nodes
    return {"loom": 1, "grid": net["grid"], "input": net["input"], "cells": cells}
