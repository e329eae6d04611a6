"""Keras models absorbed, trained on and given back; skipped where Keras is absent."""

import importlib.util
import os
import unittest

import loom
import numpy as np

HERE = importlib.util.find_spec("keras") is not None
if HERE:
    if "KERAS_BACKEND" not in os.environ:
        there = [b for b in ("jax", "torch") if importlib.util.find_spec(b) is not None]
        HERE = bool(there)
        os.environ["KERAS_BACKEND"] = there[0] if there else ""
if HERE:
    import keras
    from keras import layers

X = np.random.default_rng(2).normal(size=(40, 5)).astype(np.float32)
CLASSES = ((X[:, 0] > 0).astype(np.int32) + (X[:, 1] > 0.3)).astype(np.int32)


def mlp(activation="relu", **dense):
    model = keras.Sequential([
        keras.Input((5,)),
        layers.Dense(5, activation, **dense),
        layers.Dropout(0.5),
        layers.LayerNormalization(epsilon=0.1),
        layers.Dense(3),
    ])  # fmt: skip
    for variable in model.trainable_variables:
        noise = np.random.default_rng(len(variable.path)).normal(size=variable.shape)
        variable.assign(variable.numpy() if variable.ndim > 1 else noise.astype(np.float32))
    return model


@unittest.skipUnless(HERE, "Keras with JAX or PyTorch is not installed")
class Keras(unittest.TestCase):
    def test_a_model_says_what_it_said_for_any_batch(self):
        model = mlp()
        net = loom.absorb(model, X, fresh_process=False)
        self.assertIn("Keras", net.proof.source)
        for rows in (1, 3, 40):
            said = keras.ops.convert_to_numpy(model(X[:rows], training=False))
            np.testing.assert_allclose(net.predict(X[:rows]), said, atol=1e-5)

    def test_convolutions_and_recurrences_are_proven(self):
        image = np.random.default_rng(3).normal(size=(2, 9, 8, 3)).astype(np.float32)
        rows = np.random.default_rng(4).normal(size=(2, 4, 3)).astype(np.float32)
        i, s = keras.Input((9, 8, 3)), keras.Input((4, 3))
        y = layers.Conv2D(4, (3, 2), strides=2, padding="same")(i)
        y = layers.Flatten()(layers.MaxPooling2D(2)(layers.BatchNormalization()(y)))
        for model, x in (
            (keras.Model(i, layers.Dense(3, "softmax")(y)), image),
            (keras.Model(s, layers.GRU(4)(layers.LSTM(3, return_sequences=True)(s))), rows),
        ):
            self.assertTrue(loom.absorb(model, x, fresh_process=False).proof.passed)

    def test_what_was_given_back_predicts_the_same(self):
        for activation in ("relu", "tanh", "sigmoid", "gelu", "silu", "elu", "softplus"):
            with self.subTest(activation):
                chain = loom.Sequential(
                    [
                        loom.Dense(
                            5, 5, activation="gelu_erf" if activation == "gelu" else activation
                        ),
                        loom.LayerNorm(5, eps=0.1),
                        loom.Dropout(0.3),
                        loom.Dense(5, 3, bias=False),
                        loom.Softmax(),
                    ],
                    input=5,
                )
                given = chain.to_keras()
                said = keras.ops.convert_to_numpy(given(X, training=False))
                np.testing.assert_allclose(said, chain.predict(X), rtol=0, atol=1e-6)

    def test_an_absorbed_model_is_trained_on_and_goes_back(self):
        net = loom.absorb(mlp("tanh"), X, fresh_process=False)
        before = net.predict(X)
        net.fit(X, CLASSES, epochs=3, optimizer=loom.Adam(1e-2))
        self.assertGreater(np.abs(net.predict(X) - before).max(), 1e-3)
        self.assertIsNone(net.proof)

    def test_ids_go_back_too(self):
        net = loom.Sequential([loom.Embedding(7, 4), loom.Flatten(), loom.Dense(12, 2)], input=(3,))
        ids = np.array([[0, 6, 2], [1, 1, 5]], np.int32)
        said = keras.ops.convert_to_numpy(net.to_keras()(ids))
        np.testing.assert_allclose(said, net.predict(ids), rtol=0, atol=1e-6)

    def test_layers_that_keras_lacks_are_named(self):
        for layer, width, words in (
            (loom.Dense(2, 2, activation="relu2"), 2, "Keras has no activation 'relu2'"),
            (loom.Dense(2, 2, soft_cap=3.0), 2, "Keras has nothing for 'soft_cap': 3"),
            (loom.Lstm(2, 2), (3, 2), "LSTM: it has no rule"),
        ):
            with self.subTest(words), self.assertRaisesRegex(loom.UnsupportedError, words):
                loom.Sequential([layer], input=width).to_keras()


if __name__ == "__main__":
    unittest.main()
