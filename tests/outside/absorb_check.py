"""Models of other frameworks absorbed and proven, one line each; the last line counts.

python tests/outside/absorb_check.py [--quick] [PLANET ...] [WORD ...]

Planets: sklearn, lightgbm, xgboost, torch, transformers, keras, jax; the default is all of them. A
WORD selects models with the word in their name. --quick skips the rungs of a fresh process. A
framework that is not installed is reported and skipped.
"""

import importlib
import sys
import warnings

import loom
from loom.bridge import Unabsorbable

warnings.simplefilter("ignore")
FORM = "{:<12} {:<42} {:>6} {:>10} {:>9} {:>9} {:>7}  {}"


# The module of each planet here, its name in the table, and its full name.
PLANETS = [
    ("absorb_sklearn", "sklearn", "scikit-learn"),
    ("absorb_lightgbm", "lightgbm", "LightGBM"),
    ("absorb_xgboost", "xgboost", "XGBoost"),
    ("absorb_torch", "torch", "PyTorch"),
    ("absorb_transformers", "transformers", "transformers"),
    ("absorb_keras", "keras", "Keras"),
    ("absorb_jax", "jax", "JAX or flax"),
]


def cases(planets):
    """(framework, name, model, example inputs) of those that are installed."""
    for module, name, called in PLANETS:
        if planets and name not in planets:
            continue
        try:
            planet = importlib.import_module(module)
        except ImportError as error:
            print(f"{called} is not there: {error}", file=sys.stderr)
            continue
        yield from ((name, *case) for case in planet.modules())


def main(words):
    words = [w for w in words if w != "--quick"]  # without the rungs of a fresh process
    passed = failed = 0
    print(
        FORM.format(
            "framework", "model", "nodes", "parameters", "max abs", "max rel", "max ULP", ""
        )
    )
    names = [p[1] for p in PLANETS]
    planets, words = [w for w in words if w in names], [w for w in words if w not in names]
    for framework, name, model, inputs in cases(planets):
        if words and not any(w.lower() in name.lower() for w in words):
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
