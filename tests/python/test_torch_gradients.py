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

    def learns_alike(self, function, x, **parts):
        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(x.shape[-1], 6)
                for name, part in parts.items():
                    put = self.register_buffer if torch.is_tensor(part) else self.add_module
                    put(name, part)

            def forward(self, x):
                return function(self, self.linear(x))

        module = Head()
        net = self.absorbed(module, x)
        self.assertEqual(net.proof.rungs, ("native", "engine", "gradients"))
        self.assertLess(net.plan.gradients.largest, 1e-5)
        other = torch.randn(7, *x.shape[1:])
        with torch.no_grad():
            said = module(other).float().numpy()
        np.testing.assert_allclose(net.predict(other.numpy()), said, atol=1e-5)

    def test_chosen_values_learn_as_in_pytorch(self):
        def routed(_, y):
            best, place = y.topk(2)
            return y * torch.zeros_like(y).scatter(1, place, best.softmax(-1))

        forms = {
            "topk": lambda _, y: y.topk(3)[0] + y.topk(3, largest=False)[1],
            "sort": lambda _, y: y.view(-1, 2, 3).sort(1, descending=True)[0].flatten(1),
            "equal values": lambda _, y: torch.sort(y.relu(), dim=1, stable=True)[1] * y,
            "gather": lambda _, y: torch.gather(y * y, 1, y.argsort()),
            "argmax": lambda _, y: nn.functional.one_hot(y.argmax(-1), 6) * y + y.max(-1, True)[1],
            "ranks": lambda _, y: y * (y >= y.kthvalue(3, -1, True)[0]) - y.median(1, True)[0],
            "infinities": lambda _, y: y.masked_fill(y < y.mean(1, True), -torch.inf).topk(1)[0],
            "scatter": routed,
        }
        for name, function in forms.items():
            with self.subTest(name):
                self.learns_alike(function, torch.from_numpy(X))

    def test_what_is_read_at_computed_points_learns_as_in_pytorch(self):
        sample = nn.functional.grid_sample
        x = torch.randn(4, 2, 5, 6)
        points = torch.randn(1, 3, 4, 2)

        def turned(own, y, options):
            theta = own.place(y.flatten(1)).view(-1, 2, 3)
            size = [y.shape[0], 2, 4, 7]
            grid = nn.functional.affine_grid(theta, size, align_corners=options["align_corners"])
            return sample(y, grid, **options)

        for padding in ("zeros", "border"):
            for corners in (False, True):
                options = {"padding_mode": padding, "align_corners": corners}
                with self.subTest(**options):
                    place = nn.Linear(2 * 5 * 6, 6)
                    self.learns_alike(lambda o, y, w=options: turned(o, y, w), x, place=place)
                    for mode in ("bilinear", "nearest"):
                        self.learns_alike(
                            lambda o, y, m=mode, w=options: sample(
                                y, o.points.expand(y.shape[0], -1, -1, -1), m, **w
                            ),
                            x,
                            points=points,
                        )

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
