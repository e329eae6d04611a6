"""Absorbed modules trained beside PyTorch in double precision, one line each; the last line counts.

python tests/outside/torch_training.py [--modules N] [--seed S] [--architectures] [WORD ...]
Each is absorbed, and then: as many numbers train as in PyTorch; the gradients of the first step,
element by element, within 1e-5 of the largest of their tensor, or within three times what PyTorch
itself differs by in single precision; ten steps of SGD, parameters within
1e-4; ten steps of Adam, losses within 1e-4. Elements are matched by their starting values, which
are drawn so that no two are equal: neither names nor layouts can hide what learns.
"""

import argparse
import copy
import sys
import warnings

import loom
import numpy as np
import torch
from loom.bridge import Unabsorbable
from torch import nn

from torch_random import random_module

warnings.simplefilter("ignore")
FORM = "{:<44} {:>9} {:>10} {:>10} {:>10}  {}"
STEPS = 10


class Differs(Exception):
    pass


def prepared(module):
    """The module with other values in every parameter, no two of them equal, and no dropout."""
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        if isinstance(part, nn.MultiheadAttention):
            part.dropout = 0.0
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn_like(p), alpha=0.05)
    return module


def trained(module):
    return {n: p for n, p in module.named_parameters() if p.requires_grad}


def all_values(net):
    return np.concatenate([np.ravel(values) for values in net.state_dict().values()])


class Matched:
    """Where the elements of a module's parameters are among those of a network."""

    def __init__(self, module, net):
        values = all_values(net)
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        self.at = {}
        for name, p in trained(module).items():
            wanted = p.detach().numpy().astype(np.float32).ravel()
            found = np.searchsorted(ordered, wanted).clip(0, len(ordered) - 1)
            if not np.array_equal(ordered[found], wanted):
                raise Differs(f"{name}: values that the network does not have")
            self.at[name] = order[found]

    def take(self, net, name):
        values = all_values(net)
        return values[self.at[name]].astype(np.float64)


def arrays_of(inputs):
    return [np.ascontiguousarray(i.numpy()) for i in inputs]


def first_of(outputs):
    while isinstance(outputs, (tuple, list)):
        outputs = outputs[0]
    return outputs


class Beside:
    """One module and one network on the same batch and loss: the mean square of y - target."""

    def __init__(self, module, inputs, optimizer, rate):
        self.inputs, self.rate = inputs, rate
        self.net = loom.absorb(copy.deepcopy(module), inputs, fresh_process=False)
        self.module = copy.deepcopy(module).double().train()
        self.doubles = [i.double() if i.is_floating_point() else i for i in inputs]
        y = first_of(self.module.eval()(*self.doubles)).detach()
        self.module.train()
        self.target = torch.randn(y.shape, generator=torch.Generator().manual_seed(3)).double()
        self.trainer = loom.Trainer(self.net, optimizer=optimizer, schedule="constant")
        names = [port.name for port in self.net.inputs]
        given = arrays_of(inputs)
        self.x = given[0] if len(given) == 1 else dict(zip(names, given))
        used = [p for p in self.module.parameters() if p.requires_grad]
        make = torch.optim.SGD if optimizer == "sgd" else torch.optim.Adam
        self.optimizer = make(used, lr=rate)

    def step(self):
        """The losses of both, before the update."""
        self.optimizer.zero_grad()
        y = first_of(self.module(*self.doubles))
        loss = ((y - self.target) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        target = self.target.numpy().astype(np.float32)

        def own(outputs):
            far = outputs.reshape(target.shape).astype(np.float64) - target
            gradient = (2 * far / far.size).astype(np.float32).reshape(outputs.shape)
            return float((far**2).mean()), gradient

        mine, _ = self.trainer.step(self.x, loss=own, rate=self.rate)
        return loss.item(), mine


def single_gradients(module, inputs, target):
    """Of PyTorch in single precision, on the same batch."""
    own = copy.deepcopy(module).train()
    y = first_of(own(*inputs))
    ((y - target.float()) ** 2).mean().backward()
    return {
        n: p.grad.double().numpy().ravel() for n, p in trained(own).items() if p.grad is not None
    }


def gradients(module, inputs):
    """The largest difference of a gradient, by the largest of its tensor."""
    rate = 1e6  # the step is the gradient, and the starting value is lost beside it
    both = Beside(module, inputs, "sgd", rate)
    places = Matched(module, both.net)
    both.step()
    single = single_gradients(module, inputs, both.target)
    tops = {n: float(p.grad.abs().max()) for n, p in trained(both.module).items() if p.grad is not None}
    worst = 0.0
    for name, p in trained(both.module).items():
        if p.grad is None:
            continue
        before = trained(module)[name].detach().double().numpy().ravel()
        mine = (before - places.take(both.net, name)) / rate
        theirs = p.grad.numpy().ravel()
        top = tops[name]
        if top < 1e-6 * max(tops.values()):  # none: a bias before a batch norm, of keys
            continue
        far = float(np.abs(mine - theirs).max() / top)
        usual = float(np.abs(single[name] - theirs).max() / top)
        worst = max(worst, far)
        if far > max(1e-5, 3 * usual):
            raise Differs(
                f"the gradient of {name} differs by {far:.1e} of its largest, PyTorch's by {usual:.1e}"
            )
    return worst


def parameters(module, inputs):
    both = Beside(module, inputs, "sgd", 0.02)
    places = Matched(module, both.net)
    for _ in range(STEPS):
        both.step()
    worst = 0.0
    for name, p in trained(both.module).items():
        far = np.abs(places.take(both.net, name) - p.detach().numpy().ravel()).max()
        worst = max(worst, float(far))
        if worst > 1e-4:
            raise Differs(f"{name} differs by {worst:.1e} after {STEPS} steps of SGD")
    return worst


def losses(module, inputs):
    both = Beside(module, inputs, "adam", 1e-3)
    worst = 0.0
    for n in range(STEPS):
        theirs, mine = both.step()
        worst = max(worst, abs(theirs - mine) / max(abs(theirs), 1e-3))
        if worst > 1e-4:
            raise Differs(f"the loss of step {n + 1} of Adam is {mine:.6f}, not {theirs:.6f}")
    return worst


def architectures():
    import absorb_torch

    for name, module, inputs in absorb_torch.modules():
        yield name, module, inputs


def cases(options):
    for seed in range(options.seed, options.seed + options.modules):
        yield (f"random module {seed}", *random_module(seed))
    if options.architectures:
        yield from architectures()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--architectures", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    passed = failed = refused = 0
    print(FORM.format("module", "trained", "gradient", "parameter", "loss", ""))
    for name, module, inputs in cases(options):
        if options.words and not any(w.lower() in name.lower() for w in options.words):
            continue
        torch.manual_seed(1)
        module, inputs = prepared(module), tuple(inputs)
        count = sum(p.numel() for p in trained(module).values())
        if count == 0:
            continue
        figures, verdict = [], "ok"
        try:
            for check in (gradients, parameters, losses):
                figures.append(f"{check(module, inputs):.1e}")
            passed += 1
        except (Unabsorbable, loom.UnsupportedError) as error:
            refused += 1
            verdict = f"refused: {str(error)[:160]}"
        except (Differs, loom.LoomError, ArithmeticError) as error:
            failed += 1
            verdict = f"DIFFERS: {str(error)[:200]}"
        figures += [""] * (3 - len(figures))
        print(FORM.format(name[:44], count, *figures, verdict), flush=True)
    print(f"{passed} passed, {failed} failed, {refused} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
