"""Options of training: each value that is not a default is what the library sees."""

import dataclasses
import inspect
import json
import random
import unittest
from unittest import mock

import loom
from loom import _options, _sampling, cluster, ensemble, evolution, mesh, options, search, training
from loom._library import handle_from, lib, text_from
from support import STORIES, points

DESCRIBED = None


def described():
    """The library's description of each option."""
    global DESCRIBED
    if DESCRIBED is None:
        with _options.Options("trainer", {}) as all_options:
            DESCRIBED = json.loads(text_from(lib.loom_options_describe, all_options.handle))
    return DESCRIBED


def drawn(row, draw):
    """A value of Python that is not the default, and the text that the library has for it."""
    kind, low, high = row["type"].rstrip("?"), row.get("low", 0.0), row.get("high")
    if row["type"].endswith("[]"):
        words = draw.sample(row["values"], 2)
        return words, ",".join(words)
    if kind == "words" and row["value"]:
        return ["loss", "bytes"], "loss,bytes"
    if "values" in row:
        word = draw.choice([word for word in row["values"] if word != row["value"]])
        return word, word
    if kind == "bool":
        value = row["value"] != "true"
        return value, str(value).lower()
    if kind in ("texts", "words"):
        return (["a*", "b"], "a*,b" if kind == "words" else '["a*", "b"]')
    if kind == "rates":
        return {"(0, 0, 0, 0)/*": 0.5, "b": 2.0}, '["(0, 0, 0, 0)/*=0.5", "b=2"]'
    if kind in ("ints", "floats"):
        values = [int(low) + draw.randrange(1, 9) for _ in range(3)]
        return values, ",".join(map(str, values))
    if kind in ("int", "seed"):
        top = min(int(high or 90), int(low) + 90)
        value = draw.randint(int(low), top)
        value += (1 if value < top else -1) if str(value) == row["value"] else 0
        return value, str(value)
    top = low + 8 if high is None else high
    value = low + (top - low) * draw.randrange(1, 64) / 64
    if str(value) == row["value"] or value == high:
        value = low + (top - low) / 128
    return value, None


def arguments(name, value):
    """The keywords that set an option: of an object inside, that object."""
    outer, _, inner = name.partition(".")
    if not inner or inner == "kind":
        return {outer: value}
    kinds = {"optimizer": loom.Adam, "schedule": loom.Schedule, "augment": loom.Augment}
    return {outer: kinds[outer](**{inner: value})}


def small_network():
    return loom.Sequential([loom.Dense(4, 8, activation="relu"), loom.Dense(8, 3)], input=4)


class Options(unittest.TestCase):
    def seen(self, **given):
        """The value of each option in the library when a trainer is made with these."""
        found = {}

        class Spy(_options.Options):
            def __init__(self, kind, values):
                super().__init__(kind, values)
                for row in described():
                    found[row["name"]] = text_from(
                        lib.loom_options_get, self.handle, row["name"].encode()
                    )

        with mock.patch.object(training, "Options", Spy):
            try:
                loom.Trainer(small_network(), **given).close()
            except loom.LoomError:
                pass  # options that do not go with this network
        return found

    def test_every_option_arrives_and_no_other_changes(self):
        draw = random.Random(1)
        for row in described():
            for _ in range(4):
                value, text = drawn(row, draw)
                seen = self.seen(**arguments(row["name"], value))
                with self.subTest(option=row["name"], value=value):
                    if text is None:
                        self.assertAlmostEqual(float(seen[row["name"]]), value, delta=1e-6 * value)
                    else:
                        self.assertEqual(seen[row["name"]], text)
                    for other in described():
                        if other["name"] != row["name"]:
                            self.assertEqual(seen[other["name"]], other["value"], other["name"])

    def test_defaults_are_those_of_the_library(self):
        self.assertEqual(self.seen(), {row["name"]: row["value"] for row in described()})

    def test_fit_and_trainer_have_every_option_as_a_parameter(self):
        names = {row["name"].partition(".")[0] for row in described()}
        for function in (loom.Network.fit, loom.Trainer.__init__):
            parameters = inspect.signature(function).parameters
            self.assertLessEqual(names, set(parameters))
            self.assertNotIn(
                inspect.Parameter.VAR_KEYWORD, {p.kind for p in parameters.values()}
            )
        for struct in (loom.Optimizer, loom.Schedule, loom.Augment):
            outer = struct.__name__.lower()
            fields = {f"{outer}.{f.name}" for f in dataclasses.fields(struct)}
            wanted = {row["name"] for row in described() if row["name"].startswith(outer + ".")}
            self.assertLessEqual(wanted - {"optimizer.kind"}, fields)

    def test_a_number_out_of_range_is_refused_by_name_and_range(self):
        for row in described():
            if row["type"].rstrip("?") not in ("int", "float", "double") or "low" not in row:
                continue
            with self.subTest(option=row["name"]):
                with self.assertRaisesRegex(ValueError, rf"{row['name']} is .*, must be ") as seen:
                    loom.Trainer(small_network(), **arguments(row["name"], row["low"] - 1))
                self.assertIsInstance(seen.exception, loom.InvalidArgumentError)

    def test_an_option_without_an_effect_is_a_warning(self):
        with self.assertWarnsRegex(UserWarning, "quantile has no effect with loss mse"):
            loom.Trainer(small_network(), loss="mse", quantile=0.9).close()

    def test_an_unknown_option_is_a_type_error(self):
        with self.assertRaisesRegex(TypeError, "los"):
            small_network().fit([[0.0]], [0], los="mse")

    def test_options_that_the_struct_of_c_lacks_change_what_is_learned(self):
        x, y = points()

        def weights(**given):
            net = small_network()
            with loom.Trainer(net, **given) as trainer:
                trainer.fit(loom.Dataset(x, y), epochs=2)
                return trainer.weights_hash()

        plain = weights()
        for given in (
            {"freeze": ["(0, 0, 0, 0)/*"]},
            {"rate_for": {"*/bias": 0.0625}},
            {"class_weights": [1, 4, 1]},
            {"balanced_weights": True},
            {"balance": True},
            {"rule": "dfa"},
            {"optimizer": loom.Kfac(rate=1e-3, damping=0.1)},
        ):
            with self.subTest(**given):
                self.assertNotEqual(weights(**given), plain)
                self.assertEqual(weights(**given), weights(**given))

    def test_metrics_are_told_for_each_epoch_and_by_evaluate(self):
        x, y = points()
        net = small_network()
        seen = []
        history = net.fit(
            x, y, epochs=3, metrics=["macro_f1", "top2"], validation_data=(x, y),
            on_epoch=lambda epoch: seen.append(epoch.validation_metrics),
        )  # fmt: skip
        self.assertEqual([e.validation_metrics for e in history.epochs], seen)
        self.assertEqual(set(seen[0]), {"macro_f1", "top2"})
        self.assertEqual(history.history["val_top2"], [m["top2"] for m in seen])
        found = net.evaluate(x, y, metrics=["macro_f1", "top2"])
        self.assertEqual(found.metrics, seen[-1])
        told = net.predict(x).argmax(1)
        scores = []
        for k, score in enumerate(found.classes):
            right = sum(int(t == k and w == k) for t, w in zip(told, y))
            self.assertEqual(score.samples, int((y == k).sum()))
            recall = right / max(int((y == k).sum()), 1)
            precision = right / max(int((told == k).sum()), 1)
            self.assertAlmostEqual(score.recall, recall)
            self.assertAlmostEqual(score.precision, precision)
            scores.append(2 * recall * precision / max(recall + precision, 1e-12))
        self.assertAlmostEqual(found.metrics["macro_f1"], sum(scores) / len(scores))

    def test_the_quantile_is_the_one_that_is_asked_for(self):
        draw = random.Random(3)
        x = [[0.0]] * 256
        y = [[draw.gauss(0, 1)] for _ in x]
        found = []
        for quantile in (0.1, 0.5, 0.9):
            net = loom.Sequential([loom.Dense(1, 1)], input=1)
            net.fit(x, y, loss="quantile", quantile=quantile, epochs=60, rate=0.05, batch=256)
            found.append(float(net.predict([[0.0]])[0][0]))
        self.assertLess(found[0] + 0.5, found[1])
        self.assertLess(found[1] + 0.5, found[2])

    def test_names_of_before_are_read(self):
        from loom import optimizers

        self.assertIs(optimizers.Adam, loom.Adam)
        self.assertEqual(self.seen(loss="cross_entropy")["loss"], "softmax_ce")
        self.assertIn("adam", options.OPTIMIZERS)


def described_as(kind):
    with _options.Options(kind, {}) as made:
        return json.loads(text_from(lib.loom_options_describe, made.handle))


class EveryKind(unittest.TestCase):
    """Classes and functions whose keywords are a struct of options."""

    def calls(self):
        x, y = points(60)
        data, net = loom.Dataset(x, y), small_network
        plain = [[float(i % 7), float(i % 3)] for i in range(12)]
        scores = [[[1.0, 0.0], [0.0, 1.0]] * 3] * 2
        return {
            "neat": (evolution, lambda **o: loom.Population(
                o.pop("inputs", 1), o.pop("outputs", 1), size=o.pop("population", 150), **o)),
            "mesh_trainer": (mesh, lambda **o: loom.MeshTrainer(net(), **o)),
            "kmeans": (cluster, lambda **o: loom.kmeans(plain, **o)),
            "linkage": (cluster, lambda **o: loom.linkage(plain, **o)),
            "stack": (ensemble, lambda **o: loom.stack(scores, [0, 1] * 3, **o)),
            "darts": (search, lambda **o: loom.DartsSearch(net(), data, **o)),
            "architectures": (search, lambda **o: loom.ArchitectureSearch(net(), data, **o)),
        }  # fmt: skip

    def seen(self, kind, given):
        """The value of each option in the library when the call is made with these."""
        module, call = self.calls()[kind]
        found = {}

        class Spy(_options.Options):
            def __init__(spy, name, values):
                super().__init__(name, values)
                if name == kind:
                    for row in described_as(kind):
                        out = text_from(lib.loom_options_get, spy.handle, row["name"].encode())
                        found[row["name"]] = out

        with mock.patch.object(module, "Options", Spy):
            try:
                call(**given)
            except (loom.LoomError, TypeError):
                if not found:
                    raise
        return found

    def test_every_option_arrives_and_no_other_changes(self):
        draw = random.Random(5)
        for kind in self.calls():
            rows = described_as(kind)
            self.assertEqual(self.seen(kind, {}), {row["name"]: row["value"] for row in rows})
            for row in rows:
                value, text = drawn(row, draw)
                seen = self.seen(kind, arguments(row["name"], value))
                with self.subTest(kind=kind, option=row["name"], value=value):
                    if text is None:
                        self.assertAlmostEqual(float(seen[row["name"]]), value, delta=1e-6 * value)
                    else:
                        self.assertEqual(seen[row["name"]], text)
                    for other in rows:
                        if other["name"] != row["name"]:
                            self.assertEqual(seen[other["name"]], other["value"], other["name"])

    def test_options_of_another_kind_are_refused(self):
        with _options.Options("kmeans", {}) as made:
            with self.assertRaisesRegex(ValueError, "options of 'kmeans'; give those of 'neat'"):
                handle_from(lib.loom_population_create_with, made.handle)


def generate_parameters():
    """The options of generate() with their defaults."""
    parameters = inspect.signature(loom.LLM.generate).parameters
    return {name: parameters[name].default for name in options.GENERATE_OPTIONS}


class Generation(unittest.TestCase):
    """Options of LLM.generate(), which C has as a struct."""

    def fields(self, **given):
        """The struct, lists as Python has them."""
        made = _sampling.generate_options({**generate_parameters(), **given})
        names = [name for name, *_ in type(made)._fields_ if not name.startswith("on_")]
        found = {name: getattr(made, name) for name in names}
        for name in options.GENERATE_OPTIONS:
            count = _sampling._count(name)
            if not count:
                continue
            items = [found[name][i] for i in range(found[count])]
            found[name] = [(i.id, i.bias) for i in items] if name == "logit_bias" else items
        return found

    def value(self, name, default):
        """A value that is not the default, and the same in C."""
        if name in ("eos_ids", "banned_tokens"):
            return [3, 5], [3, 5]
        if name == "logit_bias":
            return {7: -1.5}, [(7, -1.5)]
        if isinstance(default, tuple):
            return ["a", "b c"], [b"a", b"b c"]
        if isinstance(default, bool):
            return not default, int(not default)
        if isinstance(default, (int, float)):
            return default + 1, default + 1
        return ({"type": "object"}, b'{"type": "object"}') if default is None else ("x", b"x")

    def test_every_option_arrives_in_the_struct_and_no_other_changes(self):
        plain = self.fields()
        for name, default in generate_parameters().items():
            value, wanted = self.value(name, default)
            seen = self.fields(**{name: value})
            with self.subTest(option=name):
                if isinstance(wanted, float):
                    self.assertAlmostEqual(seen[name], wanted, places=5)
                else:
                    self.assertEqual(seen[name], wanted)
                changed = {field for field in plain if seen[field] != plain[field]}
                self.assertEqual(changed - {_sampling._count(name)}, {name})

    def test_every_number_arrives_in_the_library_under_its_name(self):
        llm = loom.LLM(STORIES)
        for name, default in generate_parameters().items():
            if isinstance(default, bool) or not isinstance(default, (int, float)) or name == "seed":
                continue
            dotted = name.replace("dry_", "dry.")
            with self.subTest(option=name):
                with self.assertRaisesRegex(ValueError, rf"^.*\b{dotted} is -2e?.*, must be "):
                    llm.generate("Once", **{name: type(default)(-2000000)})

    def test_a_zero_that_c_takes_for_the_default_is_refused(self):
        for name, default in options.GENERATE_NONZERO.items():
            if f"has_{name}" in _sampling._FIELDS:
                self.assertEqual(self.fields(**{name: 0})[f"has_{name}"], 1)
                continue
            with self.subTest(option=name), self.assertRaisesRegex(ValueError, f"{name} is 0"):
                self.fields(**{name: 0})

    def test_the_struct_has_every_option(self):
        self.assertLessEqual(set(options.GENERATE_OPTIONS), _sampling._FIELDS)


if __name__ == "__main__":
    unittest.main()
