"""One ONNX file trained in Loom, compared with its graph in PyTorch in double precision.

  export LOOM_LIBRARY=build/dev/libloom.so PYTHONPATH=bindings/python
  python tests/outside/onnx_torch_training.py FILE.onnx [--extent N] [--width N] [--draws N]

--extent replaces axes that the file leaves open. --width replaces the last axis of an input in the
file. Prints one JSON object. First the weights of the file are moved by a thousandth of their
spread, so that no two are equal. Then elements are matched by value, so names and layouts cannot
hide a trained value. The rule in docs/onnx.md decides which values train. Compared are:

  count      the number of trained values equals that of PyTorch.
  loss       the mean square of the first output less a random target, before the first step.
  gradient   each element of step 1, within 1e-5 of the largest of its tensor.
  losses     of ten steps of SGD, within 1e-4.
  moved      the weights after these steps, within 1e-4 of the largest of their tensor.

The bound may also be three times the difference that PyTorch has in float32, or if each weight
moves by a rounding, or both. It is the largest of six draws, to which --draws adds some. `why`
names the difference. Exit status 1 if something differs, 2 if the file does not open as a network,
3 if this program cannot compute it.
"""
import argparse
import json
import pathlib
import re
import sys
import warnings

import numpy as np
import onnx
import torch
from onnx import numpy_helper

import loom
import onnx_torch
import onnx_torch_ops  # noqa: F401  (registers)
import onnx_torch_windows  # noqa: F401

warnings.simplefilter("ignore")
STEPS, SAMPLES = 10, 4
GRADIENT = 2.0**40  # of the step that shows gradients: they are not rounded next to weights
LARGE = 1e5  # numbers in a sample
WHOLE = -1  # instead of an axis of the samples: each sample is a whole input of the file
CALCULATED = re.compile(r"^(/|val_|eps|one|zero)|::|(^|[^a-z])(const|scalar)"
                        r"|(/x:0|/y:0|_recip:0)$|^(?!.*(bias|weight))[^./]*[0-9]$", re.I)


# The runs of PyTorch that show the effect of roundings alone.
ROUNDINGS = [{"dtype": torch.float32, "shake": shake} for shake in (None, 1, 2, 3)] + \
    [{"shake": 1}, {"shake": 2}]


class Differs(Exception):
    pass


# ---- the file ------------------------------------------------------------------------------------


def with_initializers(model):
    """If no initializer has floats, Constants of several floats are the weights."""
    floats = (1, 10, 11)
    if any(t.data_type in floats for t in model.graph.initializer):
        return
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        value = next((a.t for a in node.attribute if a.name == "value"), None)
        if node.op_type == "Constant" and value is not None and value.data_type in floats \
                and np.prod(value.dims) > 1:
            model.graph.initializer.add().CopyFrom(value)
            model.graph.initializer[-1].name = node.output[0]
        else:
            model.graph.node.add().CopyFrom(node)


def statistics(model):
    return {n for node in model.graph.node if node.op_type == "BatchNormalization"
            for n in node.input[3:5]}


def scales(model):
    """Names of the sizes of a Resize, and of the values of a OneHot."""
    first = {"Resize": 1, "Upsample": 1, "OneHot": 1}
    return {n for node in model.graph.node if node.op_type in first
            for n in node.input[first[node.op_type]:]}


def trains(model):
    """Names of the initializers that train, by the rule of docs/onnx.md."""
    others = statistics(model) | scales(model)
    return [t.name for t in model.graph.initializer
            if t.data_type in (1, 10, 11) and t.name not in others
            and np.prod(t.dims) > 0
            and (np.prod(t.dims) > 1 or not CALCULATED.search(t.name))]


def part_repeated(model):
    """Exporters merge equal tensors, so one of a repeated number is a weight of each layer."""
    kept = {t.name: t for t in model.graph.initializer}
    once = {n for n in trains(model) if np.ptp(numpy_helper.to_array(kept[n])) == 0}
    made = {}
    for node in model.graph.node:
        others = tuple(i for i in node.input if i in kept and i not in once)
        for k, name in enumerate(node.input):
            if name not in once or not others:
                continue
            copies = made.setdefault(name, {})
            own = copies.setdefault(others, f"{name}.{len(copies)}" if copies else name)
            if own not in kept:
                kept[own] = model.graph.initializer.add()
                kept[own].CopyFrom(kept[name])
                kept[own].name = own
            node.input[k] = own


def apart(model):
    """Moves the weights of a model until no two are equal."""
    part_repeated(model)
    draw = np.random.default_rng(11)
    trained, others = set(trains(model)), statistics(model)
    tensors = [t for t in model.graph.initializer if t.data_type == 1 and np.prod(t.dims) > 0
               and (t.name in trained or t.name in others)]
    if not tensors:
        return
    values = [numpy_helper.to_array(t).astype(np.float64).ravel() for t in tensors]
    # Single numbers stay: a layer may be known by one, as Gelu by its half.
    size = [max(v.std(), abs(v.mean()), 1e-3) * (t.name in trained and v.size > 1)
            for v, t in zip(values, tensors)]
    moved = [v + 1e-3 * s * draw.standard_normal(v.size) for v, s in zip(values, size)]
    whole = separate(np.concatenate(moved).astype(np.float32))
    at = 0
    for t, v in zip(tensors, values):
        t.CopyFrom(numpy_helper.from_array(whole[at:at + v.size].reshape(t.dims), t.name))
        at += v.size


def separate(values):
    """Equal values moved apart, each by the fewest steps of float32."""
    bits = values.view(np.int32).astype(np.int64)
    ordinal = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    order = np.argsort(ordinal, kind="stable")
    steps = np.arange(len(values))
    up = np.maximum.accumulate(ordinal[order] - steps) + steps
    back = np.empty_like(up)
    back[order] = up
    back = np.where(back < 0, -back | 0x80000000, back).astype(np.uint32)
    return back.view(np.float32)


def axis_of_samples(value, first):
    """States of recurrences have their samples second in a file; None: all samples share it."""
    dims = value.type.tensor_type.shape.dim
    batch = first.type.tensor_type.shape.dim[0]
    for i, d in enumerate(dims):
        if batch.dim_param and d.dim_param == batch.dim_param:
            return i
    if batch.dim_param and not any(d.dim_param for d in dims):
        return 0 if value is first else None
    if batch.dim_value > 0 and value is not first:
        return 0 if len(dims) > 1 and dims[0].dim_value == batch.dim_value else None
    return 0


def drawn(value, axis, extent, samples, draw):
    dims = [d.dim_value if d.dim_value > 0 else extent for d in value.type.tensor_type.shape.dim]
    if axis == WHOLE:
        dims = [samples] + dims
    elif axis is not None:
        dims = [samples] + dims[:axis] + dims[axis + 1:]
    kind = value.type.tensor_type.elem_type
    if kind in (6, 7):
        return draw.integers(0, 8, dims).astype(np.int64)
    if kind == 9:
        return draw.random(dims) < 0.7
    return (draw.standard_normal(dims) * 0.5).astype(np.float32)


class Case:
    """The file with other weights, its inputs with the samples first, and a target."""

    def __init__(self, model, extent, whole, samples):
        self.model, self.samples = model, samples
        apart(self.model)
        constants = {t.name for t in self.model.graph.initializer}
        self.values = [v for v in self.model.graph.input if v.name not in constants]
        first, draw = self.values[0], np.random.default_rng(5)
        self.axes = {v.name: WHOLE if whole else axis_of_samples(v, first) for v in self.values}
        self.inputs = {v.name: drawn(v, self.axes[v.name], extent, samples, draw)
                       for v in self.values}
        self.names = trains(self.model)
        self.at_once, self.target = True, None

    def settle(self):
        """Decides whether the samples run at once or one by one, and the target."""
        self.at_once = not self.fixed() and WHOLE not in self.axes.values()
        try:
            y = self.output(self.graph(torch.float64))
            self.at_once &= y.shape[0] == self.samples
        except (RuntimeError, IndexError):
            self.at_once = False
        with torch.no_grad():
            y = self.output(self.graph(torch.float64))
        spread = max(float(y.std()), 0.1 * float(y.abs().mean()), 1e-3)
        draw = torch.Generator().manual_seed(3)
        self.target = y + spread * torch.randn(y.shape, generator=draw, dtype=y.dtype)

    def fixed(self):
        first = self.values[0]
        return self.axes[first.name] == 0 and first.type.tensor_type.shape.dim[0].dim_value == 1

    def graph(self, dtype, shake=None):
        made = onnx_torch.Graph(self.model, self.names, dtype)
        if shake is not None:
            draw = torch.Generator().manual_seed(shake)
            with torch.no_grad():
                for p in made.parameters():
                    p.mul_(1 + 2.0**-23 * (2 * torch.rand(p.shape, generator=draw,
                                                          dtype=p.dtype) - 1))
        return made

    def outputs(self, graph):
        """All outputs of floats, the samples first."""
        parts = [slice(None)] if self.at_once else [slice(i, i + 1) for i in range(self.samples)]
        found = []
        for part in parts:
            given = {}
            for name, x in self.inputs.items():
                axis, x = self.axes[name], torch.from_numpy(x)
                if axis == WHOLE:
                    given[name] = x[part][0]
                else:
                    given[name] = x if axis is None else x[part].movedim(0, axis)
            found.append([y for y in graph(given) if y.is_floating_point()])
        return [torch.cat(y) if y[0].dim() else torch.stack(y) for y in zip(*found)]

    def output(self, graph):
        return self.outputs(graph)[0]


# ---- there ---------------------------------------------------------------------------------------


class There:
    def __init__(self, case, dtype=torch.float64, shake=None):
        self.case, self.graph = case, case.graph(dtype, shake)
        self.target = case.target.to(dtype)

    def gradients(self):
        """The loss and {name: gradient}; names that the loss does not reach are left out."""
        loss = (self.case.output(self.graph) - self.target).square().mean()
        weights = self.graph.weights
        found = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
        return loss.item(), {n: g for n, g in zip(weights, found) if g is not None}

    def steps(self, rate, count=STEPS):
        losses = []
        for _ in range(count):
            loss, gradients = self.gradients()
            losses.append(loss)
            with torch.no_grad():
                for n, g in gradients.items():
                    self.graph.weights[n].sub_(rate * g)
        return np.array(losses), {n: p.detach().double().numpy().ravel()
                                  for n, p in self.graph.weights.items()}

    def reached(self):
        """Names of weights that any output depends on, of all branches."""
        self.graph.all_branches = True
        total = sum(y.sum() for y in self.case.outputs(self.graph))
        self.graph.all_branches = False
        weights = self.graph.weights
        found = torch.autograd.grad(total, list(weights.values()), allow_unused=True)
        return [n for n, g in zip(weights, found) if g is not None]


# ---- here ----------------------------------------------------------------------------------------


def opened(model, extent):
    return loom.Network.load(model.SerializeToString(), name="file.onnx", open_extent=extent)


def trainer_of(net, samples):
    return loom.Trainer(net, optimizer="sgd", schedule="constant", batch=samples)


def samples_for(net):
    """Two large samples; one, if the network takes one sample at a time."""
    large = sum(np.prod(p.shape) for p in net.inputs) > LARGE
    count = 2 if large else SAMPLES
    x = {p.name: np.zeros((count if p.batched else 1, *p.shape), np.float32) for p in net.inputs}
    try:
        trainer_of(net, count).step(next(iter(x.values())) if len(x) == 1 else x, rate=0.0,
                                    loss=lambda y: (0.0, np.zeros(y.shape, np.float32)))
        return count
    except loom.LoomError:
        return 1


class Here:
    def __init__(self, case, extent):
        self.net = opened(case.model, extent)
        self.target = case.target.numpy()
        self.trainer = trainer_of(self.net, case.samples)
        given = [x if x.dtype != np.bool_ else x.astype(np.float32) for x in case.inputs.values()]
        ports = [p.name for p in self.net.inputs]
        if len(ports) != len(given):
            raise Differs(f"the network has {len(ports)} inputs, the file {len(given)}")
        given = [x if p.batched else x[None] for p, x in zip(self.net.inputs, given)]
        self.x = given[0] if len(given) == 1 else dict(zip(ports, given))

    def places(self, tensors):
        """The position of each element in the network. A constant may have the value of a weight by
        chance. Then the position is where the network has most of its tensor."""
        sizes = [np.size(v) for v in self.net.state_dict().values()]
        owners, values = np.repeat(np.arange(len(sizes)), sizes), self.values()
        order = np.argsort(values, kind="stable")
        found = []
        for wanted in tensors:
            first = np.searchsorted(values[order], wanted, "left")
            several = np.searchsorted(values[order], wanted, "right") - first
            if not several.all():
                missing = (several == 0).sum()
                raise Differs(f"the network does not have {missing} of {len(wanted)} weights")
            at = order[first]
            count = np.bincount(owners[at[several == 1]], minlength=len(sizes))
            for i in np.flatnonzero(several > 1):
                at[i] = max(order[first[i]:first[i] + several[i]], key=lambda k: count[owners[k]])
            found.append(at)
        return np.concatenate(found)

    def values(self):
        return np.concatenate([np.ravel(v) for v in self.net.state_dict().values()])

    def step(self, rate):
        target = self.target

        def own(outputs):
            far = outputs.reshape(target.shape).astype(np.float64) - target
            gradient = (2 * far / far.size).astype(np.float32).reshape(outputs.shape)
            return float((far**2).mean()), gradient

        return self.trainer.step(self.x, loss=own, rate=rate)[0]


# ---- both ----------------------------------------------------------------------------------------


def beyond(name, off, usual, limit):
    """Nothing, or the difference. `usual` computes PyTorch's own difference on request."""
    if off <= limit:
        return ""
    own = usual()
    return "" if off <= 3 * own else f"{name} differs by {off:.1e}, PyTorch's own by {own:.1e}"


def cached(make):
    """make(), computed at the first call."""
    made = []

    def value():
        if not made:
            made.append(make())
        return made[0]

    return value


def relative(a, b):
    return float((np.abs(a - b) / np.maximum(np.abs(b), 1e-12)).max())


def compare_gradients(row, case, here, there):
    """Differences of the first step. Returns a rate for further ones."""
    loss, exact = there.gradients()
    others = cached(lambda: [There(case, **way).gradients() for way in ROUNDINGS])
    names = list(exact)
    before = {n: case_values(case, n) for n in names}
    where = here.places([before[n] for n in names])
    first = here.step(GRADIENT)
    row["loss"] = relative(np.array([first]), np.array([loss]))
    after = here.values()[where].astype(np.float64)
    row["why"] = beyond("the loss", row["loss"], lambda: max(
        relative(np.array([o[0]]), np.array([loss])) for o in others()), 1e-5)
    at, top = 0, max(float(g.abs().max()) for g in exact.values())
    for n in names:
        mine = (before[n].astype(np.float64) - after[at:at + before[n].size]) / GRADIENT
        at += before[n].size
        size = float(exact[n].abs().max())
        if size < 1e-7 * top:
            continue  # a bias before a norm has no gradient but noise
        off = float(np.abs(mine - exact[n].numpy().ravel()).max()) / size
        row["gradient"] = max(row.get("gradient", 0.0), off)
        row["why"] = row["why"] or beyond(f"the gradient of {n}", off, lambda n=n, size=size: max(
            float((o[n].double() - exact[n]).abs().max()) / size for _, o in others()), 1e-5)
    return loss / sum(float(g.square().sum()) for g in exact.values())


def case_values(case, name):
    tensor = next(t for t in case.model.graph.initializer if t.name == name)
    return numpy_helper.to_array(tensor).astype(np.float32).ravel()


def steady(case, steepest):
    """A rate at which ten steps do not diverge, and the results of PyTorch with it."""
    for share in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
        losses, after = There(case).steps(share * steepest)
        if np.isfinite(losses).all() and losses[-1] <= losses[0]:
            return share * steepest, losses, after
    raise onnx_torch.Unsupported("SGD diverges at every rate")


def compare_steps(row, case, extent, steepest):
    rate, losses, after = steady(case, steepest)
    here = Here(case, extent)
    names = case.names
    before = {n: case_values(case, n) for n in names}
    others = cached(lambda: [There(case, **way).steps(rate) for way in ROUNDINGS])
    where = here.places([before[n] for n in names])
    mine = np.array([here.step(rate) for _ in range(STEPS)])
    values, at = here.values()[where].astype(np.float64), 0
    row["losses"] = relative(mine, losses)
    why = beyond("a loss of SGD", row["losses"], lambda: max(
        relative(o[0], losses) for o in others()), 1e-4)
    row["moved"] = 0.0
    for n in names:
        size = max(float(np.abs(after[n]).max()), 1e-12)
        off = float(np.abs(values[at:at + before[n].size] - after[n]).max()) / size
        at += before[n].size
        row["moved"] = max(row["moved"], off)
        why = why or beyond(f"after {STEPS} steps {n}", off, lambda n=n, size=size: max(
            float(np.abs(o[1][n] - after[n]).max()) / size for o in others()), 1e-4)
    row["why"] = why


def set_width(model, width):
    constants = {t.name for t in model.graph.initializer}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if width and value.name not in constants and len(dims) > 1 and not dims[-1].dim_value > 0:
            dims[-1].dim_value = width


def compared(path, extent, width, row):
    model = onnx.load(path)
    set_width(model, width)
    try:
        net = opened(model, extent)
    except loom.LoomError as error:
        row.update(network=False, why=str(error).split(".onnx: ")[-1])
        return 2
    row["network"] = True
    with_initializers(model)
    constants = {t.name for t in model.graph.initializer}
    first = next(v for v in model.graph.input if v.name not in constants)
    # A sample may be a whole input of the file: then it has as many axes.
    whole = len(net.inputs[0].shape) == len(first.type.tensor_type.shape.dim)
    case = Case(model, extent, whole and len(net.inputs[0].shape) > 1, samples_for(net))
    case.settle()
    there = There(case)
    reached = there.reached()
    case.names = [n for n in case.names if n in set(reached)]
    if not case.names:
        raise onnx_torch.Unsupported("no weight that trains")
    there = There(case)
    here = Here(case, extent)
    row["trained"] = sum(case_values(case, n).size for n in case.names)
    if here.net.info["trainable"] != row["trained"]:
        raise Differs(f"{here.net.info['trainable']} numbers train, in PyTorch {row['trained']}")
    rate = compare_gradients(row, case, here, there)
    if not row["why"]:
        compare_steps(row, case, extent, rate)
    return 1 if row["why"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--extent", type=int, default=0, help="of axes that the file leaves open")
    parser.add_argument("--width", type=int, default=0, help="of an open last axis; 0: --extent")
    parser.add_argument("--draws", type=int, default=0, help="more draws of PyTorch's roundings")
    options = parser.parse_args()
    ROUNDINGS.extend({"shake": 3 + i} for i in range(options.draws))
    torch.set_num_threads(1)
    row = {}
    try:
        status = compared(options.file, options.extent, options.width, row)
    except Differs as error:
        row["why"], status = str(error), 1
    except (onnx_torch.Unsupported, RuntimeError, IndexError, KeyError) as error:
        row["why"], status = f"PyTorch: {error!r}"[:200], 3
    print(json.dumps(row))
    return status


if __name__ == "__main__":
    sys.exit(main())
