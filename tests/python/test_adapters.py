"""Adapters (LoRA) beside numpy: training, merging, files."""

import os
import tempfile
import unittest

import loom

try:
    import numpy as np
except ImportError:
    np = None

SAMPLES, STEPS, RATE = 16, 30, 0.05


class Reference:
    """Dense(5, 6, tanh), Dense(6, 3) in float64, with adapters that SGD trains on the mean squared
    error. Gradients are written by hand."""

    def __init__(self, state, scales):
        self.p = {name: np.asarray(v, dtype=np.float64) for name, v in state.items()}
        self.scales = scales  # of the adapter of each weight

    def weight(self, cell):
        w = self.p[f"{cell}/weight"]
        name = f"{cell}/weight.lora"
        if name + ".a" not in self.p:
            return w
        return w + self.scales[cell] * self.p[name + ".b"] @ self.p[name + ".a"]

    def forward(self, x):
        self.x = x
        first, last = "(0, 0, 0, 0)", "(0, 0, 1, 0)"
        self.h = np.tanh(x @ self.weight(first).T + self.p[f"{first}/bias"])
        return self.h @ self.weight(last).T + self.p[f"{last}/bias"]

    def step(self, x, t, rate):
        y = self.forward(x)
        loss = np.mean((y - t) ** 2)
        dy = 2 * (y - t) / y.size
        dh = (dy @ self.weight("(0, 0, 1, 0)")) * (1 - self.h**2)
        for cell, d, at in (("(0, 0, 0, 0)", dh, self.x), ("(0, 0, 1, 0)", dy, self.h)):
            self.p[f"{cell}/bias"] -= rate * d.sum(axis=0)
            dw, name = d.T @ at, f"{cell}/weight.lora"
            if name + ".a" not in self.p:
                self.p[f"{cell}/weight"] -= rate * dw
                continue
            a, b, scale = self.p[name + ".a"], self.p[name + ".b"], self.scales[cell]
            da, db = scale * b.T @ dw, scale * dw @ a.T
            self.p[name + ".a"], self.p[name + ".b"] = a - rate * da, b - rate * db
        return loss


def samples():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(SAMPLES, 5)).astype(np.float32)
    return x, np.sin(x[:, :3] * 2).astype(np.float32)


def network():
    return loom.Sequential([loom.Dense(5, 6, activation="tanh"), loom.Dense(6, 3)], input=5)


@unittest.skipIf(np is None, "needs numpy")
class Adapters(unittest.TestCase):
    def train(self, net, scales, steps=STEPS):
        x, t = samples()
        reference = Reference(net.state_dict(), scales)
        trainer = loom.Trainer(net, loss="mse", optimizer="sgd", rate=RATE, batch=SAMPLES)
        for _ in range(steps):
            ours = trainer.step(x, t, rate=RATE)[0]
            self.assertAlmostEqual(ours, reference.step(x, t, RATE), delta=1e-6)
        for name, values in net.state_dict().items():
            self.assertLess(np.abs(np.asarray(values) - reference.p[name]).max(), 1e-6, name)
        return reference

    def test_training_is_that_of_numpy(self):
        cases = [
            ((), dict(rank=2), {"(0, 0, 0, 0)": 8.0, "(0, 0, 1, 0)": 8.0}),
            (("weight",), dict(rank=3, alpha=6.0), {"(0, 0, 0, 0)": 2.0, "(0, 0, 1, 0)": 2.0}),
            ((), dict(rank=4, alpha=3.0, rank_stabilized=True),
             {"(0, 0, 0, 0)": 1.5, "(0, 0, 1, 0)": 1.5}),
        ]
        for weights, options, scales in cases:
            with self.subTest(options):
                net = network()
                adapted = net.with_adapter(weights, **options, seed=7)
                frozen = {n: v for n, v in adapted.state_dict().items() if n.endswith("weight")}
                self.train(adapted, scales)
                for name, values in frozen.items():
                    np.testing.assert_array_equal(values, adapted.parameter(name))

    def test_a_merged_network_predicts_the_same(self):
        adapted = network().with_adapter(rank=2)
        reference = self.train(adapted, {"(0, 0, 0, 0)": 8.0, "(0, 0, 1, 0)": 8.0})
        merged = adapted.merge_adapters()
        x, _ = samples()
        self.assertEqual(len(merged.parameters()), 4)
        for cell in ("(0, 0, 0, 0)", "(0, 0, 1, 0)"):
            got = np.asarray(merged.parameter(f"{cell}/weight"))
            self.assertLess(np.abs(got - reference.weight(cell)).max(), 1e-6)
        np.testing.assert_allclose(merged.predict(x), adapted.predict(x), atol=2e-6)

    def test_a_new_adapter_changes_no_bit_whatever_its_options(self):
        net, (x, _) = network(), samples()
        adapted = net.with_adapter("w*", name="new-1", rank=5, alpha=99.0, dropout=0.75, seed=11)
        np.testing.assert_array_equal(net.predict(x), adapted.predict(x))
        np.testing.assert_array_equal(net.predict(x), adapted.merge_adapters().predict(x))
        a = np.asarray(adapted.parameter("(0, 0, 0, 0)/weight.new-1.a"))
        self.assertEqual(a.shape, (5, 5))
        self.assertLessEqual(np.abs(a).max(), 5**-0.5)
        other = net.with_adapter(rank=5, seed=12).parameter("(0, 0, 0, 0)/weight.lora.a")
        self.assertTrue(np.any(np.asarray(other) != a))

    def test_files_keep_adapters(self):
        x, t = samples()
        adapted = network().with_adapter("weight", rank=2, alpha=5.0, dropout=0.5)
        adapted.fit(x, t, epochs=2, loss="mse", validation_split=0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.entity")
            adapted.save(path)
            again = loom.load(path)
        np.testing.assert_array_equal(again.predict(x), adapted.predict(x))
        self.assertEqual(again.json(), adapted.json())
        with self.assertRaisesRegex(loom.LoomError, "merge"):
            adapted.save_bytes("onnx")
        adapted.merge_adapters().save_bytes("onnx")

    def test_mistakes_are_named(self):
        net = network()
        for call, message in [
            (lambda: net.with_adapter("q"), "no weight of a product is named q"),
            (lambda: net.with_adapter(rank=0), "rank is 0, must be 1 to 65536"),
            (lambda: net.with_adapter(dropout=1.0), "dropout is 1, must be from 0, below 1"),
            (lambda: net.with_adapter(name="a b"), "the name 'a b'"),
            (lambda: net.with_adapter().with_adapter(), "has two adapters 'lora'"),
            (net.merge_adapters, "the network has no adapters"),
        ]:
            with self.assertRaisesRegex(loom.LoomError, message):
                call()


if __name__ == "__main__":
    unittest.main()
