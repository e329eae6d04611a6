"""The rung `gradients`: one step of SGD changes each parameter as it does in the module."""

import unittest
import warnings

import loom
import numpy as np
from loom.bridge.torch_gradients import compare_gradients

warnings.simplefilter("ignore")

try:
    import torch
    from torch import nn
except ImportError:
    torch = None

X = np.random.default_rng(3).normal(size=(12, 5)).astype(np.float32)


@unittest.skipIf(torch is None, "torch is not installed")
class Gradients(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def absorbed(self, module, *inputs):
        return loom.absorb(module, inputs or (torch.from_numpy(X),), fresh_process=False)

    def test_a_network_that_learns_the_same_has_the_rung_also_in_its_file(self):
        body = [nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.PReLU(), nn.Linear(8, 1)]
        net = self.absorbed(nn.Sequential(*body))
        self.assertEqual(net.proof.rungs, ("native", "engine", "gradients"))
        self.assertEqual(net.plan.gradients.compared, 7)
        self.assertLess(net.plan.gradients.largest, 1e-5)
        again = loom.Network.load(net.save_bytes("entity"), name="net.entity")
        self.assertIn("gradients", again.proof.rungs)

    def test_what_is_detached_would_train_and_is_refused(self):
        class Detached(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(5, 8), nn.Linear(8, 3)

            def forward(self, x):
                return self.b(torch.relu(self.a(x)).detach())

        with self.assertRaisesRegex(ArithmeticError, "learns something else.* a.weight differs"):
            self.absorbed(Detached())

    def test_another_module_of_the_same_outputs_is_told_apart(self):
        module = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))
        net = self.absorbed(module)
        source = net.plan.torch
        made = lambda: loom.Network.load(net.plan.serialize(), name="m.onnx")  # noqa: E731
        self.assertTrue(compare_gradients(source, made, [X]).held)
        with torch.no_grad():
            module[0].weight[1, 2] += 0.01
        found = compare_gradients(source, made, [X])
        self.assertFalse(found.held)
        self.assertIn("weight differs by", found.text)

    def test_why_it_was_not_asked_is_told(self):
        class Drawn(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(5, 3)

            def forward(self, x):
                return nn.functional.dropout(self.a(x), 0.5, self.training)

        rows = {
            "draws random numbers": (Drawn(), torch.from_numpy(X)),
            "Expected more than 1 value": (
                nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3)),
                torch.from_numpy(X[:1]),
            ),
        }
        for why, (module, x) in rows.items():
            with self.subTest(why):
                net = self.absorbed(module, x)
                self.assertEqual(net.proof.rungs, ("native", "engine"))
                self.assertIn(why, net.plan.gradients.text)


if __name__ == "__main__":
    unittest.main()
