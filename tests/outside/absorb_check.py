"""Models of other frameworks absorbed and proven, one line each; the last line counts.

python tests/outside/absorb_check.py [WORD ...]    those whose name has one of the words
Needs loom, and scikit-learn or torch; a framework that is not installed is said and skipped.
"""

import sys
import warnings

import loom
from loom.bridge import Unabsorbable

warnings.simplefilter("ignore")
FORM = "{:<12} {:<42} {:>6} {:>10} {:>9} {:>9} {:>7}  {}"


def cases():
    """(framework, name, model, example inputs)."""
    try:
        import absorb_sklearn as planet

        yield from (("sklearn", n, m, planet.X) for n, m in planet.estimators())
    except ImportError as error:
        print(f"scikit-learn is not there: {error}", file=sys.stderr)
    try:
        import torch

        torch.set_num_threads(1)
        import absorb_torch

        yield from (("torch", n, m, x) for n, m, x in absorb_torch.modules())
    except ImportError as error:
        print(f"PyTorch is not there: {error}", file=sys.stderr)
    try:
        import absorb_jax

        yield from (("jax", n, m, x) for n, m, x in absorb_jax.modules())
    except ImportError as error:
        print(f"JAX or flax is not there: {error}", file=sys.stderr)


def main(words):
    words = [w for w in words if w != "--quick"]  # without the rungs of a fresh process
    passed = failed = 0
    print(
        FORM.format(
            "framework", "model", "nodes", "parameters", "max abs", "max rel", "max ULP", ""
        )
    )
    for framework, name, model, inputs in cases():
        if words and not any(w.lower() in f"{framework} {name}".lower() for w in words):
            continue
        try:
            net = loom.absorb(model, inputs, fresh_process="--quick" not in sys.argv)
        except (loom.LoomError, ArithmeticError) as error:
            failed += 1
            said = "; ".join(map(str, error.problems)) if isinstance(error, Unabsorbable) else error
            print(
                FORM.format(framework, name, "", "", "", "", "", f"{type(error).__name__}: {said}")
            )
            continue
        passed += 1
        worst = {
            k: max(o[k] for o in net.proof.report["outputs"])
            for k in ("max_abs", "max_rel", "max_ulp")
        }
        print(
            FORM.format(
                framework,
                name,
                len(net.plan.steps),
                net.plan.parameters,
                f"{worst['max_abs']:.1e}",
                f"{worst['max_rel']:.1e}",
                worst["max_ulp"],
                "holds",
            )
        )
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
