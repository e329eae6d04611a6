"""Functions of JAX and modules of flax, absorbed with proofs; skipped where JAX is absent."""

import importlib.util
import unittest

import loom
import numpy as np

HERE = all(importlib.util.find_spec(n) is not None for n in ("jax", "flax"))
if HERE:
    import jax
    import jax.numpy as jnp
    from flax import linen, nnx
    from loom.bridge import Unabsorbable
    from loom.bridge.jax_graph import RULES, Value

RNG = np.random.default_rng(9)
X = RNG.normal(size=(5, 4)).astype(np.float32)
SQUARE = RNG.normal(size=(4, 4)).astype(np.float32)


def absorbed(function, *inputs):
    return loom.absorb(function, inputs, fresh_process=False)


@unittest.skipUnless(HERE, "JAX and flax are not installed")
class Jax(unittest.TestCase):
    def test_a_function_says_what_it_said_for_any_batch(self):
        function = jax.jit(lambda x: jnp.tanh(x @ SQUARE) + x[:, :1])
        net = absorbed(function, X)
        for rows in (1, 3, 5):
            np.testing.assert_allclose(net.predict(X[:rows]), function(X[:rows]), atol=1e-6)

    def test_nnx_modules_are_asked_as_in_evaluation(self):
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.a, self.d = nnx.Linear(4, 4, rngs=rngs), nnx.Dropout(0.9, rngs=rngs)

            def __call__(self, x):
                return self.d(self.a(x))

        module = Net(nnx.Rngs(0))
        net = absorbed(module, X)
        np.testing.assert_allclose(net.predict(X), X @ module.a.kernel[...], atol=1e-6)

    def test_a_scan_is_unrolled_in_both_directions(self):
        def summed(x, reverse):
            step = lambda c, row: (c * 0.5 + row, c)  # noqa: E731
            last, seen = jax.lax.scan(step, jnp.ones(x.shape[0]), x.T, reverse=reverse)
            return seen.T + last[:, None]

        for reverse in (False, True):
            self.assertTrue(absorbed(lambda x, r=reverse: summed(x, r), X).proof.passed)

    def test_all_that_has_no_rule_is_told_with_its_module(self):
        class Odd(linen.Module):
            @linen.compact
            def __call__(self, x):
                return jnp.sort(linen.Dense(4, name="first")(x)) + jnp.cumsum(x, 1)

        module = Odd().bind(Odd().init(jax.random.key(0), X))
        problems = loom.absorb(module, X, plan_only=True).problems
        self.assertEqual([p.what for p in problems], ["sort", "cumsum"])
        self.assertTrue(all("Odd" in p.where for p in problems))
        with self.assertRaises(Unabsorbable):
            absorbed(module, X)
        ahead = lambda x: jax.lax.while_loop(
            lambda v: v.sum() < 9, lambda v: v + 1, x
        )  # noqa: E731
        (problem,) = loom.absorb(ahead, X, plan_only=True).problems
        self.assertIn("control flow", problem.why)
        with self.assertRaisesRegex(loom.InvalidArgumentError, "example_inputs"):
            loom.absorb(ahead)

    def test_each_broken_rule_turns_its_proof_red(self):
        image = RNG.normal(size=(2, 6, 5, 3)).astype(np.float32)
        kernel = RNG.normal(size=(3, 2, 3, 4)).astype(np.float32)
        table = RNG.normal(size=(7, 4)).astype(np.float32)
        ids = np.array([[0, 6, 3]], np.int32)
        window = lambda x: linen.avg_pool(x, (2, 2), (2, 2))  # noqa: E731
        convolved = lambda x: linen.max_pool(  # noqa: E731
            jax.lax.conv_general_dilated(
                x, kernel, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            ),
            (2, 2),
        )
        turned = Value([4, 4], array=SQUARE.T)
        shifted = Value([7, 4], array=np.roll(table, 1, 0))
        flipped = Value([3, 2, 3, 4], array=kernel[::-1])
        cases = [
            # (rule, the function, its input, what is done to the operands)
            ("dot_general", lambda x: x @ SQUARE, X, lambda a, b: (a, turned)),
            ("add", lambda x: x @ SQUARE + 1.0, X, lambda a, b: (a, b._replace(array=b.array * 0))),
            ("sub", lambda x: x - SQUARE[0], X, lambda a, b: (b, a)),
            ("tanh", jnp.tanh, X, None),
            ("conv_general_dilated", convolved, image, lambda a, b: (a, flipped)),
            ("reduce_window_sum", window, image, None),
            ("select_n", lambda x: jnp.where(x > 0, x, x * 2), X, lambda w, a, b: (w, b, a)),
            ("gather", lambda i: jnp.take(table, i, 0), ids, lambda a, b: (shifted, b)),
        ]
        for name, function, x, change in cases:
            kept = RULES[name]

            def broken(g, *operands, _kept=kept, _change=change, **params):
                if _change is not None:
                    return _kept(g, *_change(*operands), **params)
                made = _kept(g, *operands, **params)
                return made._replace(name=g.op("Mul", made.name, g.number(1.01)))

            self.assertTrue(absorbed(function, x).proof.passed, name)
            RULES[name] = broken
            try:
                with self.subTest(name), self.assertRaises(ArithmeticError):
                    absorbed(function, x)
            finally:
                RULES[name] = kept


if __name__ == "__main__":
    unittest.main()
