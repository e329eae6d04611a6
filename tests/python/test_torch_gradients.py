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

    def test_one_of_the_two_biases_of_a_recurrence_may_be_frozen(self):
        class Last(nn.Module):
            def __init__(self, kind, frozen):
                super().__init__()
                self.cells, self.head = kind(5, 4, batch_first=True), nn.Linear(4, 2)
                getattr(self.cells, frozen).requires_grad = False

            def forward(self, x):
                return self.head(self.cells(x)[0][:, -1])

        x = torch.from_numpy(X.reshape(4, 3, 5))
        for kind in (nn.LSTM, nn.GRU):
            for frozen in ("bias_ih_l0", "bias_hh_l0"):
                with self.subTest(kind.__name__, frozen=frozen):
                    module = Last(kind, frozen)
                    net = self.absorbed(module, x)
                    self.assertIn("gradients", net.proof.rungs)
                    learn = [p.numel() for p in module.parameters() if p.requires_grad]
                    self.assertEqual(net.info["trainable"], sum(learn))

    def test_sines_and_rounded_values_learn_as_in_pytorch(self):
        class Waves(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(5, 6), nn.Linear(6, 3)

            def forward(self, x):
                h = 4 * self.a(x)
                whole = torch.round(h) + torch.floor(h) - torch.ceil(3 * h)
                return self.b(torch.sin(h) + torch.cos(2 * h) * h + 0.1 * whole)

        net = self.absorbed(Waves())
        self.assertEqual(net.proof.rungs, ("native", "engine", "gradients"))
        self.assertLess(net.plan.gradients.largest, 1e-5)

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
