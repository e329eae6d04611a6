"""Absorbed modules trained and compared with PyTorch in double precision; the last line counts.

python tests/outside/torch_training.py [--modules N] [--seed S] [--architectures] [WORD ...].
python tests/outside/torch_training.py --record FILE.npz     the results of PyTorch, of modules N.
python tests/outside/torch_training.py --replay FILE.npz     against these, without PyTorch.

Each is absorbed and compared. The number of trained values must equal that of PyTorch. The
gradients of the first step must agree, element by element, within 1e-5 of the largest of their
tensor. After ten steps of SGD, parameters must agree within 1e-4; after ten steps of Adam, losses
within 1e-4. PyTorch's own results may move by more if it computes in float32, or if each weight
moves by a rounding. That happens after a ReLU that is almost 0, or if Adam divides noise by noise.
Then the bound is three times that. Elements are matched by their starting values, of which no two
are equal. So names and layouts cannot hide a trained value.
"""

import argparse
import sys
import warnings

import loom
import numpy as np

warnings.simplefilter("ignore")
FORM = "{:<44} {:>9} {:>10} {:>10} {:>10}  {}"
STEPS = 10
GRADIENT = 1e6  # at this rate one step of SGD is the gradient: the old value is lost in rounding
RATES = {"gradient": GRADIENT, "sgd": 0.02, "adam": 1e-3}


class Differs(Exception):
    pass


# ---- here ----------------------------------------------------------------------------------------


class Here:
    """One network in training: an ONNX file as absorb() makes it, on one batch.

    The loss is the mean square of y - target, y being the first output.
    """

    def __init__(self, case, how):
        self.net = loom.Network.load(case["onnx"].tobytes(), name="absorbed.onnx")
        self.rate, self.target = RATES[how], case["target"]
        self.places = self._places(case["before"])
        optimizer = "adam" if how == "adam" else "sgd"
        self.trainer = loom.Trainer(self.net, optimizer=optimizer, schedule="constant")
        inputs = case["inputs"]
        ports = [port.name for port in self.net.inputs]
        self.x = inputs[0] if len(inputs) == 1 else dict(zip(ports, inputs))

    def values(self):
        return np.concatenate([np.ravel(v) for v in self.net.state_dict().values()])

    def _places(self, before):
        values = self.values()
        order = np.argsort(values, kind="stable")
        found = np.searchsorted(values[order], before).clip(0, len(order) - 1)
        if not np.array_equal(values[order[found]], before):
            raise Differs("the network does not have all values of the source")
        return order[found]

    def trained(self):
        return self.values()[self.places].astype(np.float64)

    def step(self):
        """The loss before the update."""
        target = self.target

        def own(outputs):
            far = outputs.reshape(target.shape).astype(np.float64) - target
            gradient = (2 * far / far.size).astype(np.float32).reshape(outputs.shape)
            return float((far**2).mean()), gradient

        return self.trainer.step(self.x, loss=own, rate=self.rate)[0]


def relative(losses, wanted):
    return float((np.abs(losses - wanted) / np.maximum(wanted, 1e-3)).max())


def check_case(case):
    """The largest differences of gradients, parameters and losses. Raises Differs."""
    here = Here(case, "gradient")
    if here.net.info["trainable"] != len(case["before"]):
        raise Differs(
            f"training changes {here.net.info['trainable']} numbers, of {len(case['before'])}"
        )
    here.step()
    mine = (case["before"].astype(np.float64) - here.trained()) / GRADIENT
    # A bias before a batch norm and one of keys have no gradient.
    real = case["tops"] > 1e-6 * case["tops"].max()
    far = np.where(real, np.abs(mine - case["gradients"]) / np.maximum(case["tops"], 1e-300), 0)
    beyond = far > np.maximum(1e-5, 3 * case["usual"])
    if beyond.any():
        at = int(np.argmax(np.where(beyond, far, 0)))
        raise Differs(
            f"a gradient differs by {far[at]:.1e} of the largest of its tensor, by a rounding "
            f"PyTorch's by {case['usual'][at]:.1e}"
        )
    here = Here(case, "sgd")
    for _ in range(STEPS):
        here.step()
    moved = float(np.abs(here.trained() - case["after"]).max())
    if moved > max(1e-4, 3 * float(case["shaken"][0])):
        raise Differs(f"a parameter differs by {moved:.1e} after {STEPS} steps of SGD")
    here = Here(case, "adam")
    losses = np.array([here.step() for _ in range(STEPS)])
    other = relative(losses, case["losses"])
    if other > max(1e-4, 3 * float(case["shaken"][1])):
        raise Differs(f"losses of Adam differ by {other:.1e}")
    return float(far.max()), moved, other


# ---- cases of a file -----------------------------------------------------------------------------

FIELDS = ("onnx", "target", "before", "gradients", "tops", "usual", "after", "shaken", "losses")


def record(path, cases):
    arrays = {"names": np.array([name for name, _ in cases])}
    for i, (_, case) in enumerate(cases):
        arrays.update({f"{i}/{field}": case[field] for field in FIELDS})
        arrays.update({f"{i}/input{k}": x for k, x in enumerate(case["inputs"])})
    np.savez_compressed(path, **arrays)


def replayed(path):
    with np.load(path) as file:
        for i, name in enumerate(file["names"]):
            case = {field: file[f"{i}/{field}"] for field in FIELDS}
            inputs = [key for key in file.files if key.startswith(f"{i}/input")]
            case["inputs"] = [file[key] for key in sorted(inputs)]
            yield str(name), lambda case=case: case


def live(options):
    from torch_cases import cases

    return cases(options)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--architectures", action="store_true")
    parser.add_argument("--record")
    parser.add_argument("--replay")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    passed = failed = refused = 0
    kept = []
    print(FORM.format("module", "trained", "gradient", "parameter", "loss", ""))
    for name, make in replayed(options.replay) if options.replay else live(options):
        if options.words and not any(w.lower() in name.lower() for w in options.words):
            continue
        figures, verdict, count = ["", "", ""], "ok", ""
        try:
            case = make()
            count = len(case["before"])
            figures = [f"{f:.1e}" for f in check_case(case)]
            passed += 1
            kept.append((name, case))
        except (Differs, ArithmeticError) as error:
            failed += 1
            verdict = f"DIFFERS: {str(error)[:200]}"
        except loom.LoomError as error:
            refused += 1
            verdict = f"refused: {str(error)[:160]}"
        print(FORM.format(name[:44], count, *figures, verdict), flush=True)
    if options.record:
        record(options.record, kept)
    print(f"{passed} passed, {failed} failed, {refused} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
