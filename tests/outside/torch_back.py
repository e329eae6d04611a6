"""Networks exported to PyTorch, one line each; the last line counts.

python tests/outside/torch_back.py [OPTION ...] [WORD ...]     --help names the options

Modules are absorbed and trained here for some steps. Then the weights go back into the module, and
from a saved file into a copy of it that has other weights. Networks of Loom, with fields drawn away
from their defaults, become independent modules, or a refusal that names a field. The results of
PyTorch in double precision are within 1e-5 of Loom's, times the largest output if that is above 1.
"""

import argparse
import copy
import re
import sys
import warnings

import loom
import numpy as np
import torch
from torch.utils import _pytree

import torch_networks_random
from torch_cases import of_samples, prepared
from torch_random import random_module

warnings.simplefilter("ignore")
FORM = "{:<44} {:>10}  {}"
BOUND, STEPS, RATE = 1e-5, 3, 1e-2
REFUSAL = re.compile(r"cell \(.*\).*, \w+: '\w+' is .*")


class Differs(Exception):
    pass


def asked(net, inputs):
    """All outputs of the network."""
    samples = len(next(iter(inputs.values())))
    with net.session(max_batch=samples, quantize_activations=False) as session:
        return list(session.run(inputs).values())


def answered(module, inputs):
    """All outputs of the module in double precision."""
    twice = copy.deepcopy(module).double()
    given = [torch.from_numpy(np.asarray(x)) for x in inputs.values()]
    with torch.no_grad():
        said = twice(*(x.double() if x.is_floating_point() else x.long() for x in given))
    return [y.numpy() for y in _pytree.tree_leaves(said)]


def apart(module, net, inputs):
    """The distance of the two from each other. Raises Differs."""
    here, there = asked(net, inputs), answered(module, inputs)
    if [y.size for y in here] != [y.size for y in there]:
        raise Differs(f"{[y.shape for y in here]} here, {[y.shape for y in there]} there")
    far = 0.0
    for mine, own in zip(here, there):
        own = own.reshape(mine.shape)
        same = (mine == own) | (np.isnan(mine) & np.isnan(own))
        top = max(1.0, np.abs(mine[np.isfinite(mine)]).max(initial=0))
        far = max(far, float(np.where(same, 0, np.abs(mine - own)).max(initial=0) / top))
    if not far <= BOUND:
        raise Differs(f"outputs differ by {far:.1e}")
    return far


# ---- modules -------------------------------------------------------------------------------------


def train(net, inputs):
    def loss(y):
        return float((y.astype(np.float64) ** 2).mean()), (2 * y / y.size).astype(np.float32)

    x = next(iter(inputs.values())) if len(inputs) == 1 else inputs
    trainer = loom.Trainer(net, optimizer="adam", schedule="constant")
    for _ in range(STEPS):
        trainer.step(x, loss=loss, rate=RATE)


def scrambled(module):
    """A copy with other numbers in what trains."""
    other = copy.deepcopy(module)
    with torch.no_grad():
        for p in other.parameters():
            if p.requires_grad:
                p.mul_(0.5).add_(1)
    return other


def check_module(module, inputs):
    net = loom.absorb(module, inputs, fresh_process=False)
    other = scrambled(module)
    arrays = [np.ascontiguousarray(x.numpy()) for x in inputs]
    arrays = [x.astype(np.int32) if x.dtype.kind == "i" else x for x in arrays]
    given = dict(zip((port.name for port in net.inputs), arrays))
    if net.info["trainable"]:
        train(net, given)
    back = net.to_torch()
    if back is not module:
        raise Differs("the module that comes back is another one")
    far = apart(back, net, given)
    loaded = loom.Network.load(net.save_bytes(), name="net.entity")
    return max(far, apart(loaded.to_torch(other), loaded, given))


def modules(options):
    for seed in range(options.seed, options.seed + options.modules):
        module, inputs = random_module(seed)
        yield f"random module {seed}", module, inputs
    if not options.architectures:
        return
    import absorb_torch

    for name, module, inputs in absorb_torch.modules():
        torch.manual_seed(1)
        yield name, module, tuple(of_samples(x, 8) for x in inputs)


# ---- networks ------------------------------------------------------------------------------------


def check_network(seed):
    net, _ = torch_networks_random.network(seed)
    inputs = torch_networks_random.inputs_of(net, seed)
    return apart(net.to_torch(), net, inputs)


def cases(options):
    """(name, a function that gives the largest difference)."""
    torch.set_num_threads(1)
    for name, module, inputs in modules(options):
        torch.manual_seed(1)
        yield name, lambda m=prepared(module), i=inputs: check_module(m, i)
    for seed in range(options.seed, options.seed + options.networks):
        yield f"random network {seed}", lambda s=seed: check_network(s)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=int, default=120)
    parser.add_argument("--networks", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--architectures", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    passed = failed = refused = 0
    print(FORM.format("case", "difference", ""))
    for name, check in cases(options):
        if options.words and not any(w.lower() in name.lower() for w in options.words):
            continue
        far, verdict = "", "ok"
        try:
            far = f"{check():.1e}"
            passed += 1
        except loom.UnsupportedError as error:
            verdict = f"refused: {str(error)[:160]}"
            named = "network" not in name or REFUSAL.fullmatch(str(error)) is not None
            refused, failed = refused + named, failed + (not named)
        except Exception as error:  # noqa: BLE001  (one line for any error)
            failed += 1
            verdict = f"DIFFERS: {type(error).__name__}: {str(error)[:200]}"
        print(FORM.format(name[:44], far, verdict), flush=True)
    print(f"{passed} passed, {failed} failed, {refused} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
