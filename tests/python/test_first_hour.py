"""The first hour of a user: layers without widths, labels of any kind, progress, Ctrl-C, charts."""

import contextlib
import copy
import io
import pickle
import sys
import types
import unittest
import unittest.mock
import xml.etree.ElementTree as xml

import loom
import numpy as np
from loom import _chart, _progress
from support import STORIES, Scratch, points

X, Y = points(96)
IMAGES = np.random.default_rng(1).standard_normal((6, 3, 8, 8)).astype(np.float32)


def small(outputs=3, seed=1):
    layers = [loom.Dense(8, activation="tanh"), loom.Dense(outputs)]
    return loom.Sequential(layers, input=4, seed=seed)


class Widths(unittest.TestCase):
    def test_widths_follow_from_the_layer_before(self):
        for layers, shape, parameters in (
            ([loom.Dense(8), loom.Dense(3)], (4,), 67),
            ([loom.Dense(out=8), loom.LayerNorm(), loom.Dense(3)], (4,), 83),
            ([loom.Conv2d(8, padding=1), loom.BatchNorm(), loom.Dense(5)], (3, 8, 8), 2821),
            ([loom.Conv1d(8), loom.Conv1d(4, kernel=1), loom.Dense(2)], (3, 9), None),
            ([loom.Embedding(20, 8), loom.Lstm(6), loom.Dense(2)], (7,), None),
            ([loom.Residual([loom.Dense(4)]), loom.Dense(2)], (4,), 30),
            ([loom.Parallel([loom.Dense(3), loom.Dense(3)]), loom.Dense(2)], (4,), None),
        ):
            with self.subTest(layers=layers):
                net = loom.Sequential(layers, input=shape)
                self.assertEqual(net.info["input"], shape)
                if parameters is not None:
                    self.assertEqual(net.info["parameters"], parameters)

    def test_the_network_is_that_of_the_widths_written_out(self):
        a = loom.Sequential([loom.Dense(8), loom.Dense(3)], input=4, seed=5)
        b = loom.Sequential([loom.Dense(4, 8), loom.Dense(8, 3)], input=4, seed=5)
        self.assertEqual(a.save_bytes(), b.save_bytes())

    def test_data_give_the_input(self):
        net = loom.Sequential([loom.Dense(8), loom.Dense(3)])
        self.assertIn("not known", repr(net))
        with self.assertRaisesRegex(ValueError, "fit it, or give `input`"):
            net.info  # noqa: B018
        net.fit(X, Y, epochs=1)
        self.assertEqual(net.info["input"], (4,))
        images = loom.Sequential([loom.Conv2d(4, padding=1), loom.Dense(2)])
        self.assertEqual(images.predict(IMAGES).shape, (6, 2))

    def test_wrong_shapes_are_told_and_a_later_try_works(self):
        net = loom.Sequential([loom.Conv2d(4), loom.Dense(2)])
        with self.assertRaises(loom.LoomError):
            net.fit(X, Y, epochs=1)
        self.assertEqual(net.predict(IMAGES).shape, (6, 2))

    def test_layers_are_plain_values(self):
        with self.assertRaisesRegex(TypeError, r"Dense\(\) needs 'out'"):
            loom.Dense()
        for layer in (loom.Dense(3), loom.LayerNorm()):
            for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
                self.assertEqual(other, layer)
                self.assertTrue(other._is_open)
            with self.assertRaisesRegex(ValueError, "not known here"):
                layer.description()
        with self.assertRaises(loom.InvalidArgumentError):
            loom.Sequential([loom.Dense(4, 0)], input=4)


class Labels(unittest.TestCase):
    NAMES = np.array(["pear", "apple", "fig"])

    def test_texts_and_integers_are_learned_and_come_back(self):
        for y, names in (
            (self.NAMES[Y], ["apple", "fig", "pear"]),
            (self.NAMES[Y].tolist(), ["apple", "fig", "pear"]),
            (self.NAMES[Y].astype(object), ["apple", "fig", "pear"]),
            (Y * 10 - 10, ["-10", "0", "10"]),
            (Y[:, None] * 2, ["0", "2", "4"]),
            (Y, []),
        ):
            with self.subTest(y=y[:3]):
                net = small()
                net.fit(X, y, epochs=60, rate=0.02)
                self.assertEqual(net.info["classes"], names)
                found = net.classify(X)
                self.assertEqual(type(found[0]), type(np.asarray(y).reshape(-1).tolist()[0]))
                right = np.mean(np.array(found) == np.asarray(y).reshape(-1))
                self.assertGreater(right, 0.9)
                self.assertAlmostEqual(net.evaluate(X, y).accuracy, right, delta=1e-6)

    def test_a_trained_network_keeps_its_classes(self):
        net = small()
        net.fit(X, self.NAMES[Y], epochs=2)
        again = loom.Network.load(net.save_bytes())
        self.assertEqual(again.info["classes"], ["apple", "fig", "pear"])
        only = Y == 0
        first = net.evaluate(X[only], self.NAMES[Y[only]])
        self.assertEqual(first.samples, int(only.sum()))
        with self.assertRaisesRegex(loom.InvalidArgumentError, "'plum' is not a class"):
            net.fit(X[:1], ["plum"], epochs=1)

    def test_two_texts_for_one_output(self):
        net = small(1)
        y = np.where(Y == 0, "no", "yes")
        net.fit(X, y, epochs=80, rate=0.02, loss="bce")
        self.assertGreater(np.mean(np.array(net.classify(X)) == y), 0.9)
        net = small(1)
        net.fit(X, y, epochs=1)
        with self.assertRaisesRegex(loom.UnsupportedError, "not trained for classes"):
            net.classify(X)

    def test_integers_for_one_output_are_numbers(self):
        y = np.arange(len(X))
        net, other = small(1), small(1)
        self.assertEqual(
            net.fit(X, y, epochs=2).history, other.fit(X, y.astype(np.float32), epochs=2).history
        )
        self.assertEqual(net.info["loss"], "mse")
        self.assertIsNone(net.evaluate(X, y).accuracy)
        small(1).fit(X, Y > 0, epochs=1, loss="bce")

    def test_data_sets_have_the_names(self):
        data = loom.Dataset(X, self.NAMES[Y])
        self.assertEqual(data.classes, ["apple", "fig", "pear"])
        self.assertEqual(data.split(0.5)[1].classes, ["apple", "fig", "pear"])
        data = loom.Dataset(X, Y, classes=self.NAMES)
        self.assertEqual(data.classes, self.NAMES.tolist())
        with self.assertRaisesRegex(loom.InvalidArgumentError, "2 names for 3 classes"):
            loom.Dataset(X, Y, classes=["a", "b"])


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Progress(unittest.TestCase):
    def shown(self, stream, **how):
        with contextlib.redirect_stderr(stream), unittest.mock.patch.object(
            _progress, "_SECONDS", 0
        ):
            small().fit(X, Y, epochs=3, **how)
        return stream.getvalue()

    def test_a_terminal_has_a_bar_and_a_file_nothing(self):
        text = self.shown(Terminal())
        self.assertIn("epoch 1/3  batch 2/3  loss", text)
        self.assertEqual(text.count("\n"), 1)
        self.assertIn("epoch 3/3", text.rstrip("\n").rsplit("\r", 1)[1])
        self.assertEqual(self.shown(io.StringIO()), "")
        self.assertEqual(self.shown(Terminal(), verbose=False), "")

    def test_lines_stay_if_asked_for(self):
        for stream in (io.StringIO(), Terminal()):
            lines = self.shown(stream, verbose=True, validation_split=0.25)
            kept = [part.rsplit("\r", 1)[-1] for part in lines.split("\n")]
            found = [line for line in kept if "validation" in line]
            self.assertEqual(len(found), 3, lines)

    def test_a_line_is_no_wider_than_the_terminal(self):
        with unittest.mock.patch("shutil.get_terminal_size", return_value=types.SimpleNamespace(
            columns=30
        )):  # fmt: skip
            for part in self.shown(Terminal()).replace("\n", "\r").split("\r"):
                if "batch" in part:
                    self.assertLess(len(part.replace("\x1b[K", "")), 30)

    def test_a_notebook_has_one_output_that_changes(self):
        shown = []
        handle = types.SimpleNamespace(update=shown.append)
        module = types.ModuleType("IPython")
        module.get_ipython = lambda: types.SimpleNamespace(kernel=1)
        module.display = types.SimpleNamespace(
            HTML=str, display=lambda body, display_id: (shown.append(body), handle)[1]
        )
        with unittest.mock.patch.dict(sys.modules, {"IPython": module}):
            self.shown(io.StringIO())
        self.assertIn("<progress", shown[0])
        self.assertIn("epoch 3/3", shown[-1])

    def test_a_bar_changes_no_bit(self):
        a, b = small(), small()
        with contextlib.redirect_stderr(Terminal()):
            a.fit(X, Y, epochs=2)
        b.fit(X, Y, epochs=2, verbose=False)
        self.assertEqual(a.save_bytes(), b.save_bytes())


class Interrupted(unittest.TestCase):
    def stopped(self, net, at, **how):
        def stop(done, steps, loss):
            self.batches += 1
            if self.batches == at:
                raise KeyboardInterrupt

        self.batches = 0
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(KeyboardInterrupt):
            net.fit(X, Y, epochs=5, on_batch=stop, **how)
        return errors.getvalue()

    def test_the_weights_and_epochs_so_far_stay(self):
        net = small()
        start = net.state_dict()
        said = self.stopped(net, 8)
        self.assertIn("stopped in epoch 3 of 5", said)
        self.assertIn("epochs=3) goes on", said)
        self.assertEqual(len(net.history.epochs), 2)
        self.assertFalse(np.array_equal(net.parameter("(0, 0, 0, 0)/weight"),
                                        start["(0, 0, 0, 0)/weight"]))  # fmt: skip

    def test_a_stop_in_the_first_epoch_is_no_start_from_zero(self):
        net = small()
        self.stopped(net, 2)
        self.assertFalse(net.info["fresh"])
        kept, fresh = net.save_bytes(), small()
        a, b = loom.Network.load(kept).fit(X, Y, epochs=1), net.fit(X, Y, epochs=1)
        self.assertEqual(a.history, b.history)
        self.assertNotEqual(b.history, fresh.fit(X, Y, epochs=1).history)

    def test_a_checkpoint_is_named(self):
        with unittest.mock.patch.object(loom.Trainer, "fit", side_effect=KeyboardInterrupt):
            errors = io.StringIO()
            with contextlib.redirect_stderr(errors), self.assertRaises(KeyboardInterrupt):
                small().fit(X, Y, checkpoint="run.ckpt")
        self.assertIn("goes on", errors.getvalue())

    def test_a_text_so_far_stays(self):
        llm = loom.LLM(STORIES)
        tokens = []

        def stop(token):
            tokens.append(token)
            if len(tokens) == 4:
                raise KeyboardInterrupt

        with contextlib.redirect_stderr(io.StringIO()) as errors:
            with self.assertRaises(KeyboardInterrupt):
                llm.generate("Once", max_tokens=20, on_token=stop)
        self.assertIn("continue_() goes on", errors.getvalue())
        whole = llm.generate("Once", max_tokens=20)
        self.assertTrue(whole.startswith(llm.last))
        self.assertGreater(len(llm.last), 0)


class Charts(Scratch):
    def history(self, **how):
        return small().fit(X, Y, epochs=12, validation_split=0.25, **how)

    def test_a_history_is_a_chart_and_a_table(self):
        found = self.history(metrics=["macro_f1"])
        self.assertRegex(repr(found), "^<loom.History 12 epochs, loss [0-9.]+, val_loss")
        page = found._repr_html_()
        self.assertIn("<svg", page)
        self.assertIn("val_macro_f1", page)
        self.assertEqual(loom.History([])._repr_html_(), "<p>no epochs</p>")

    def test_plot_writes_svg_without_matplotlib(self):
        file = self.folder / "run.svg"
        with unittest.mock.patch.dict(sys.modules, {"matplotlib.figure": None}):
            found = self.history().plot()
            self.history().plot(str(file))
            with self.assertRaisesRegex(ImportError, "pip install matplotlib"):
                self.history().plot("run.png")
        self.assertIsInstance(found, _chart.Svg)
        for text in (found, file.read_text()):
            names = [node.text for node in xml.fromstring(text).iter() if node.text]
            for name in ("loss", "val_loss", "val_accuracy", "epoch"):
                self.assertIn(name, names)

    def test_ticks_are_round_and_enclose_the_values(self):
        draw = np.random.default_rng(2)
        for _ in range(200):
            low = draw.normal() * 10 ** draw.uniform(-6, 6)
            high = low + abs(draw.normal()) * 10 ** draw.uniform(-6, 6)
            found = _chart.ticks(low, high)
            within = 1e-8 * (found[1] - found[0])
            self.assertLessEqual(found[0], low + within)
            self.assertGreaterEqual(found[-1], high - within)
            self.assertTrue(3 <= len(found) <= 9, found)
            labels = [_chart.label(v, found[1] - found[0]) for v in found]
            self.assertEqual(len(set(labels)), len(labels), (found, labels))

    def test_ticks_of_shares_stay_from_0_to_1(self):
        self.assertGreaterEqual(_chart.ticks(0.0, 1.0, 4)[0], 0)
        self.assertLessEqual(_chart.ticks(0.02, 1.0, 4)[-1], 1)

    def test_gaps_and_single_points_are_drawn(self):
        drawn = _chart.panel("loss", {"a": [1.0, None, float("nan"), 2.0], "b": [3.0]})
        self.assertEqual(drawn.count("<circle"), 3)


class Representations(unittest.TestCase):
    def test_networks_and_models_are_tables(self):
        lines = repr(small()).splitlines()
        self.assertRegex(lines[0], r"^<loom.Network \[4\] -> \[3\], 2 layers")
        self.assertIn("Dense", lines[3])
        deep = loom.Sequential([loom.Dense(2, 2) for _ in range(100)], input=2)
        self.assertLessEqual(len(repr(deep).splitlines()), 41)
        self.assertIn("more lines", repr(deep))
        llm = loom.LLM(STORIES)
        self.assertRegex(repr(llm), r"(?s)^<loom.LLM .*layers +4\n")
        self.assertIn("<table>", llm._repr_html_())
        llm.close()
        self.assertEqual(repr(llm), "<loom.LLM, closed>")


if __name__ == "__main__":
    unittest.main()
