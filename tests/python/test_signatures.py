"""Signatures of the package: no function hides its options. All surfaces have one default."""

import inspect
import re
import tomllib
import unittest

import loom
from support import ROOT

# Functions whose keywords are names of the user's own inputs.
OWN_NAMES = {"Mesh.push", "Mesh.run"}
HIDING = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def public():
    """Every public function and method of the package, as (name, function)."""
    for name in loom.__all__:
        thing = getattr(loom, name)
        if inspect.isfunction(thing):
            yield name, thing
        if not inspect.isclass(thing):
            continue
        for member in dir(thing):
            found = inspect.getattr_static(thing, member)
            function = found.__func__ if isinstance(found, (classmethod, staticmethod)) else found
            own = inspect.isfunction(function) and function.__module__.startswith("loom")
            if own and (not member.startswith("_") or member == "__init__"):
                yield f"{name}.{member}", function


class Signatures(unittest.TestCase):
    def test_every_parameter_has_a_name(self):
        found = list(public())
        self.assertGreater(len(found), 250)
        for name, function in found:
            kinds = {p.kind for p in inspect.signature(function).parameters.values()}
            if name == "Graph.add" or name == "Graph.again" or name == "Graph.output":
                kinds -= {inspect.Parameter.VAR_POSITIONAL}  # any number of values
            with self.subTest(function=name):
                self.assertEqual(bool(kinds.intersection(HIDING)), name in OWN_NAMES)

    def test_every_parameter_has_a_type(self):
        for name, function in public():
            signature = inspect.signature(function)
            bare = [
                p.name for p in list(signature.parameters.values())
                if p.annotation is inspect.Parameter.empty and p.name not in ("self", "cls")
            ]  # fmt: skip
            with self.subTest(function=name):
                self.assertEqual(bare, [])

    def test_functions_that_hand_options_on_show_and_take_them(self):
        generate = set(inspect.signature(loom.LLM.generate).parameters)
        for function, but in (
            (loom.LLM.stream, set()),
            (loom.LLM.chat, {"prompt", "rewind"}),
            (loom.LLM.continue_, {"prompt", "rewind"}),
            (loom.LLM.generate_batch, {"prompt", "rewind", "on_token", "on_prefill"}),
        ):
            self.assertLessEqual(generate - but, set(inspect.signature(function).parameters))


def options(name):
    """Defaults of a struct of api/options, those of structs inside by their names."""
    tables = tomllib.loads((ROOT / "api/options/training.toml").read_text())["struct"]
    rows = next(table["options"] for table in tables if table["name"] == name)
    return {row["name"]: row.get("default") for row in rows}


def numbers(path, pattern):
    """The number that a text says."""
    found = re.search(pattern, (ROOT / path).read_text())
    return None if found is None else float(found[1])


# Defaults that differ, and why.
REASONS = {
    ("rate", "estimators"): "rows of scikit-learn are few: an epoch has few updates",
    ("epochs", "estimators"): "the same; MLPClassifier has max_iter=200",
}


def surfaces():
    """The defaults of each surface: {option: {surface: value}}."""
    parameters = {
        "Network.fit": inspect.signature(loom.Network.fit).parameters,
        "Trainer": inspect.signature(loom.Trainer.__init__).parameters,
        "Trainer.fit": inspect.signature(loom.Trainer.fit).parameters,
    }
    trainer, kinds = options("TrainerOptions"), options("Optimizer")
    schedule = options("Schedule")
    batch = next(
        row["unset"] for table in tomllib.loads(
            (ROOT / "api/options/training.toml").read_text())["struct"]
        if table["name"] == "TrainerOptions" for row in table["options"] if row["name"] == "batch"
    )  # fmt: skip
    fit = parameters["Network.fit"]
    out = {
        "rate": {"description": trainer["rate"], "Optimizer": loom.Adam().rate},
        "optimizer": {"description": kinds["kind"], "Network.fit": fit["optimizer"].default,
                      "Trainer": parameters["Trainer"]["optimizer"].default},
        "schedule": {"description": schedule["kind"], "Network.fit": fit["schedule"].default,
                     "Trainer": parameters["Trainer"]["schedule"].default},
        "batch": {"description": float(re.match("[0-9]+", batch)[0])},
        "epochs": {
            "C++": numbers("include/loom/fit_options.hpp", r"int64_t epochs = ([0-9]+);"),
            "search": numbers("cli/train/search.cpp", r"trials = 20, epochs = ([0-9]+)"),
            "Network.fit": fit["epochs"].default,
            "Trainer.fit": parameters["Trainer.fit"]["epochs"].default,
        },
        "early_stop": {
            "C++": numbers("include/loom/fit_options.hpp", r"int64_t early_stop = ([0-9]+);"),
            "Network.fit": fit["early_stop"].default,
            "Trainer.fit": parameters["Trainer.fit"]["early_stop"].default,
        },
        "return_sequence": {
            kind: inspect.signature(getattr(loom, kind)).parameters["return_sequence"].default
            for kind in ("Rnn", "Lstm", "Gru", "RecurrentStack", "ConvLstm")
        },
    }  # fmt: skip
    try:
        from loom.sklearn import LoomClassifier, LoomRegressor
    except ImportError:
        return out
    for estimator in (LoomClassifier, LoomRegressor):
        shown = inspect.signature(estimator.__init__).parameters
        for name in ("rate", "optimizer", "batch", "epochs", "early_stop"):
            out[name]["estimators"] = shown[name].default
    return out


class Defaults(unittest.TestCase):
    def test_one_set_of_defaults(self):
        for option, values in surfaces().items():
            plain = [v for where, v in values.items() if not REASONS.get((option, where))]
            with self.subTest(option=option, values=values):
                self.assertNotIn(None, plain)
                self.assertEqual(len(set(plain)), 1)

    def test_other_defaults_have_a_reason_and_differ(self):
        found = surfaces()
        for (option, where), reason in REASONS.items():
            values = found[option]
            if where not in values:
                continue
            with self.subTest(option=option, where=where):
                others = {v for place, v in values.items() if place != where}
                self.assertNotIn(values[where], others)


if __name__ == "__main__":
    unittest.main()
