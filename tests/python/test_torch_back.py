"""Networks given back to PyTorch: into the module they came from, and as free-standing modules."""

import copy
import json
import unittest
import warnings

import loom
import numpy as np
from loom.bridge import Plan, torch_state

warnings.simplefilter("ignore")

try:
    import torch
    from torch import nn
except ImportError:
    torch = None

X = np.random.default_rng(3).normal(size=(12, 5)).astype(np.float32)


def of_weights(names=None):
    """A network of a plan that says what trains, as absorb() makes one of a module."""
    plan = Plan("PyTorch", "2", "m")
    plan.trainable = {1: "shift", 2: "fc.weight"}
    shift, weight = (np.arange(n, dtype=np.float64).reshape(s) for n, s in ((5, 5), (15, (3, 5))))
    plan.see(shift, 1)
    plan.see(weight, 2)
    moved = plan.op("Add", plan.input("x", ["batch", 5]), plan.constant(shift))
    turned = plan.op("Transpose", plan.constant(weight), perm=[1, 0])
    plan.output(plan.op("MatMul", moved, turned), "y")
    if names is not None:
        plan.metadata[torch_state.METADATA] = json.dumps(names)
    return loom.Network.load(plan.serialize(), name="m.onnx")


class Names(unittest.TestCase):
    def test_a_weight_that_shifts_the_input_trains(self):
        net = of_weights()
        self.assertEqual(net.info["trainable"], 20)
        self.assertFalse(net.info["normalizes"])

    def test_every_file_keeps_the_names_of_the_state_dict(self):
        names = {"fc.weight": "[3, 5] (0, 0, 0, 0)/weight", "same": "as fc.weight"}
        net = of_weights(names)
        net.fit(X, X[:, :3], loss="mse", epochs=1)
        for format in ("entity", "onnx", "npz", "safetensors"):
            with self.subTest(format):
                file = net.save_bytes(format)
                again = loom.Network.load(file, name=f"net.{format}")
                self.assertEqual(json.loads(again.json())["state_dict"], names)
        made = loom.Network.from_json(net.json())
        self.assertEqual(json.loads(made.json())["state_dict"], names)

    def test_names_that_are_no_texts_are_refused(self):
        text = json.loads(of_weights().json())
        for bad in ([], {"w": 3}, "w"):
            with self.subTest(bad), self.assertRaisesRegex(loom.LoomError, "state_dict"):
                loom.Network.from_json({**text, "state_dict": bad})


class Pieces(unittest.TestCase):
    """The texts that say where the values of an entry are."""

    def test_views_of_every_kind_are_written_and_read(self):
        rng = np.random.default_rng(0)
        a, b = np.arange(24.0).reshape(4, 6), np.arange(100.0, 106.0)

        class Net:
            def parameter(self, name):
                return {"(0)/a": a, "(0)/b": b}[name].astype(np.float32)

        at = {float(v): i for i, v in enumerate([*a.ravel(), *b])}
        parameters = [
            torch_state.Parameter("(0)/a", 0, 24),
            torch_state.Parameter("(0)/b", 24, 6),
        ]
        shuffled = a.ravel()[rng.permutation(24)].reshape(2, 3, 4)
        cases = [
            a, a.T, a.reshape(2, 3, 4), a[::-1], a[1:3, ::2], a[:, [0, 3, 1]], b, b[2:3],
            np.concatenate([a[2:], a[:2]]), np.concatenate([a, b[None]]), shuffled, a[0, 0],
        ]  # fmt: skip
        for values in cases:
            with self.subTest(values.shape):
                own = np.vectorize(at.get)(values)
                pieces = " + ".join(torch_state._pieces(np.asarray(own), parameters))
                text = f"{list(values.shape)} {pieces}"
                np.testing.assert_array_equal(torch_state.values_of(Net(), text), values)
        self.assertEqual(list(torch_state._pieces(np.arange(24).reshape(4, 6), parameters)),
                         ["(0)/a"])  # fmt: skip


@unittest.skipIf(torch is None, "PyTorch is not installed")
class SameModule(unittest.TestCase):
    def trained(self, module, x):
        net = loom.absorb(module, (torch.from_numpy(x),), fresh_process=False)
        y = net.predict(x)
        net.fit(x, np.zeros_like(y), loss="mse", epochs=2, optimizer=loom.Adam(1e-2))
        self.assertGreater(np.abs(net.predict(x) - y).max(), 1e-4)
        return net

    def compared(self, module, net, x):
        with torch.no_grad():
            said = module(torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(said, net.predict(x), rtol=0, atol=1e-5)

    def module(self):
        tied = nn.Linear(6, 5, bias=False)
        parts = [nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 5, bias=False), tied]
        parts[3].weight = nn.Parameter(torch.randn(5, 6))
        tied.weight = parts[3].weight
        return nn.Sequential(*parts[:4], nn.Linear(5, 6), tied)

    def test_weights_go_back_into_the_module(self):
        module = self.module()
        net = self.trained(module, X)
        self.assertIs(net.to_torch(), module)
        self.assertIs(module[3].weight, module[5].weight)
        self.compared(module, net, X)

    def test_a_file_fills_another_module_of_the_class(self):
        net = self.trained(self.module(), X)
        loaded = loom.Network.load(net.save_bytes())
        other = self.module()
        self.assertIs(loaded.to_torch(other), other)
        self.compared(other, net, X)

    def test_gates_of_recurrences_and_packed_projections_find_their_rows(self):
        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.r = nn.LSTM(5, 4, 2, bidirectional=True, batch_first=True)
                self.a = nn.MultiheadAttention(8, 2, batch_first=True)

            def forward(self, x):
                y = self.r(x)[0]
                return y + self.a(y, y, y, need_weights=False)[0]

        module = Both()
        x = np.random.default_rng(0).normal(size=(4, 3, 5)).astype(np.float32)
        net = self.trained(module, x)
        self.compared(net.to_torch(), net, x)

    def test_what_does_not_fit_is_named(self):
        net = self.trained(nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)), X)
        cases = [
            (nn.Sequential(nn.Linear(5, 4)), "no 2.weight"),
            (nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)), r"2.weight is \[3, 4\]"),
        ]
        for module, words in cases:
            with self.subTest(words), self.assertRaisesRegex(loom.LoomError, words):
                net.to_torch(module)
        made = loom.Sequential([loom.Dense(5, 4)], input=5)
        with self.assertRaisesRegex(loom.UnsupportedError, "not absorbed"):
            made.to_torch(nn.Linear(5, 4))

    def test_constants_of_another_module_are_not_mixed_in(self):
        class Fixed(nn.Module):
            def __init__(self, value):
                super().__init__()
                self.register_buffer("b", torch.full((5,), value))
                self.f = nn.Linear(5, 2)

            def forward(self, x):
                return self.f(torch.tanh(x * self.b))

        net = self.trained(Fixed(2.0), X)
        self.compared(net.to_torch(Fixed(2.0)), net, X)
        with self.assertRaisesRegex(loom.LoomError, "b does not train"):
            net.to_torch(Fixed(3.0))


@unittest.skipIf(torch is None, "PyTorch is not installed")
class FreeStanding(unittest.TestCase):
    def test_a_network_of_its_own_is_a_graph_of_torch(self):
        layers = [loom.Dense(5, 6, activation="tanh"), loom.LayerNorm(6), loom.Dropout(0.3),
                  loom.Softmax("entmax"), loom.Dense(6, 2, soft_cap=3.0)]  # fmt: skip
        net = loom.Sequential(layers, input=5)
        module = net.to_torch()
        self.assertEqual(len(list(module.parameters())), len(net.parameters()))
        with torch.no_grad():
            np.testing.assert_allclose(
                module(torch.from_numpy(X)).numpy(), net.predict(X), rtol=0, atol=1e-5
            )
            self.assertEqual(module(torch.from_numpy(X[:1])).shape, (1, 2))
        again = copy.deepcopy(module).train()
        torch.nn.functional.mse_loss(again(torch.from_numpy(X)), torch.zeros(12, 2)).backward()
        self.assertTrue(all(p.grad is not None for p in again.parameters()))

    def test_a_mean_and_a_scale_that_training_found_go_along(self):
        net = loom.Sequential([loom.Dense(5, 2)], input=5)
        net.fit(X * 7 + 3, X[:, :2], loss="mse", epochs=1, normalize="standard")
        self.assertTrue(net.info["normalizes"])
        x = X * 7 + 3
        with torch.no_grad():
            said = net.to_torch()(torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(said, net.predict(x), rtol=0, atol=1e-5)

    def test_what_torch_lacks_is_named_by_layer_and_field(self):
        net = loom.Sequential([loom.Softmax("entmax", alpha=1.3)], input=4)
        with self.assertRaisesRegex(
            loom.UnsupportedError, r"cell \(0, 0, 0, 0\), Softmax: 'alpha' is 1.3"
        ):
            net.to_torch()
        text = json.loads(loom.Sequential([loom.Dense(3, 3)] * 2, input=3).json())
        text["cells"][0]["link"] = {"from": [0, 0, 1, 0], "feedback": True}
        with self.assertRaisesRegex(
            loom.UnsupportedError, r"cell \(0, 0, 0, 0\), Dense: 'link' is a feedback link"
        ):
            loom.Network.from_json(text).to_torch()

    def test_a_field_that_no_rule_reads_is_an_error(self):
        from loom.bridge import torch_free, torch_layers  # noqa: F401

        net = loom.Sequential([loom.Dense(5, 2, soft_cap=3.0)], input=5)
        rule = torch_free.RULES["Dense"]

        def forgets(b, c, xs):
            made = rule(b, c, xs)
            c._read.discard("soft_cap")
            return made

        torch_free.RULES["Dense"] = forgets
        try:
            with self.assertRaisesRegex(loom.UnsupportedError, "Dense: 'soft_cap' is 3.0"):
                net.to_torch()
        finally:
            torch_free.RULES["Dense"] = rule


if __name__ == "__main__":
    unittest.main()
