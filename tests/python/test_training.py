"""Training from Python: histories, callbacks, cancelling, going on, files."""

import unittest

import loom
import numpy as np
from support import ROOT, Scratch, points, same_bits


def small():
    layers = [loom.Dense(4, 16, activation="tanh"), loom.Dense(16, 3)]
    return loom.Sequential(layers, input=4, seed=7)


class Training(Scratch):
    def test_it_learns_and_says_so(self):
        x, y = points()
        net = small()
        history = net.fit(x, y, epochs=40, optimizer=loom.Adam(1e-2), validation_split=0.25)
        self.assertEqual(sorted(history.history), ["loss", "val_accuracy", "val_loss"])
        self.assertLess(history.history["loss"][-1], history.history["loss"][0] / 2)
        found = net.evaluate(x, y)
        self.assertGreater(found.accuracy, 0.9)
        self.assertEqual(found.accuracy, (net.predict(x).argmax(1) == y).mean())
        self.assertEqual(np.trace(found.confusion), round(found.accuracy * 240))
        shares = net.probabilities(net.predict(x))
        np.testing.assert_allclose(shares.sum(1), 1, atol=1e-6)
        self.assertEqual(net.info["loss"], "softmax_ce")

    def test_numbers_are_fitted_too(self):
        x, _ = points()
        y = (x @ np.array([1, -2, 0.5, 0], np.float32))[:, None]
        net = loom.Sequential([loom.Dense(4, 1)], input=4)
        net.fit(x, y, epochs=60, optimizer=loom.Adam(0.05), loss="mse")
        found = net.evaluate(x, y)
        self.assertGreater(found.r2, 0.999)
        self.assertIsNone(found.accuracy)
        self.assertIsNone(found.confusion)

    def test_whole_numbers_are_features_where_the_network_takes_numbers(self):
        x, y = points()
        net, other = small(), small()
        net.fit((x * 10).astype(np.int64), y, epochs=1)
        other.fit((x * 10).astype(np.int64).astype(np.float32), y, epochs=1)
        self.assertTrue(same_bits(net.predict(x), other.predict(x)))

    def test_every_optimizer_and_schedule_trains(self):
        x, y = points()
        for kind, optimizer in loom.options.OPTIMIZERS.items():
            with self.subTest(kind):
                history = small().fit(x, y, epochs=3, optimizer=optimizer(rate=1e-3))
                losses = history.history["loss"]
                self.assertLess(losses[-1], losses[0])
        for kind in loom._ffi.SCHEDULE:
            schedule = loom.Schedule(kind, every=3, milestones=(1, 2))
            rates = [e.rate for e in small().fit(x, y, epochs=4, schedule=schedule).epochs]
            with self.subTest(kind):
                self.assertEqual(len(set(rates)) > 1, kind not in ("constant", "plateau"))

    def test_callbacks_see_every_batch_and_epoch_and_may_stop(self):
        x, y = points()
        batches, epochs = [], []
        small().fit(x, y, epochs=2, on_batch=lambda *a: batches.append(a), on_epoch=epochs.append)
        self.assertEqual([b[:2] for b in batches], [(i, 8) for i in range(1, 9)] * 2)
        self.assertEqual([e.number for e in epochs], [1, 2])
        net = small()
        with self.assertRaises(loom.CancelledError):
            net.fit(x, y, epochs=5, on_epoch=lambda e: e.number < 2)
        self.assertFalse(net.info["fresh"])

    def test_what_a_callback_raises_comes_out(self):
        x, y = points()

        def fails(*_):
            raise KeyError("mine")

        for name in ("on_batch", "on_epoch"):
            with self.assertRaisesRegex(KeyError, "mine"):
                small().fit(x, y, **{name: fails})

    def test_a_resumed_run_has_the_bits_of_one_that_never_stopped(self):
        x, y = points()
        whole, first, second = small(), small(), small()
        file = self.folder / "run.entity"
        whole.fit(x, y, epochs=6)
        with self.assertRaises(loom.CancelledError):
            first.fit(x, y, epochs=6, checkpoint=file, on_epoch=lambda e: e.number < 3)
        second.fit(x, y, epochs=6, checkpoint=file, resume=True)
        self.assertTrue(same_bits(whole.predict(x), second.predict(x)))

    def test_single_steps(self):
        x, y = points()
        with loom.Trainer(small(), optimizer=loom.Sgd(0.1)) as trainer:
            losses = [trainer.step(x[:32], y[:32])[0] for _ in range(20)]
        self.assertLess(losses[-1], losses[0])

    def test_a_loss_of_ones_own_has_the_bits_of_a_built_in_one(self):
        x, _ = points()
        targets = np.sin(x @ np.arange(12, dtype=np.float32).reshape(4, 3))

        def mean_squares(outputs):
            d = outputs - targets[:32]
            rows, cols = np.float32(len(d)), np.float32(d.shape[1])
            return float((d * d).mean()), (np.float32(1) / rows) * ((d + d) / cols)

        hashes = []
        for loss in (None, mean_squares):
            with loom.Trainer(small(), optimizer=loom.Sgd(0.1)) as trainer:
                for _ in range(5):
                    y = targets[:32] if loss is None else None
                    value, updated = trainer.step(x[:32], y, loss=loss)
                    self.assertTrue(updated and value > 0)
                self.assertGreater(trainer.bytes, 131 * 4)
                hashes.append(trainer.weights_hash())
        self.assertEqual(*hashes)

    def test_a_loss_of_ones_own_may_fail_and_changes_nothing(self):
        x, y = points()
        with loom.Trainer(small()) as trainer:
            trainer.step(x[:8], y[:8])
            before = trainer.weights_hash()

            def fails(_):
                raise KeyError("mine")

            with self.assertRaisesRegex(KeyError, "mine"):
                trainer.step(x[:8], loss=fails)
            with self.assertRaisesRegex(ValueError, r"\[3\], must be \[8, 3\]"):
                trainer.step(x[:8], loss=lambda _: (1.0, [1.0, 2.0, 3.0]))
            with self.assertRaises(ValueError):
                trainer.step(x[:8], y[:8], loss=fails)
            self.assertEqual(trainer.weights_hash(), before)
            self.assertTrue(trainer.step(x[:8], loss=lambda out: (1.0, np.ones_like(out)))[1])

    def test_files_in_memory_are_data_sets(self):
        net = small()
        rows = []
        data = loom.Dataset.from_file(
            b"1,2,3,4,0\n4,3,2,1,2\n", net, progress=lambda done, total: rows.append((done, total))
        )
        self.assertEqual((len(data), rows), (2, [(2, 2)]))
        with self.assertRaisesRegex(loom.BadFileError, "bad.csv"):
            loom.Dataset.from_file(b"1,2,3,4,0\n4,x,2,1,2\n", net, name="bad.csv")
        with self.assertRaises(loom.CancelledError):
            loom.Dataset.from_file(b"1,2,3,4,0\n", net, progress=lambda *_: False)

    def test_files_are_data_sets(self):
        data = ROOT / "examples" / "data"
        net = loom.Sequential([loom.Dense(784, 10)], input=784)
        digits = loom.Dataset.from_file(
            data / "digits-test.gz", net, labels=data / "digit-labels-test.gz"
        )
        self.assertEqual((len(digits), digits.sample, digits.has_labels), (500, (784,), True))
        self.assertEqual(digits.x.shape, (500, 784))
        self.assertFalse(digits.x.flags.writeable)
        self.assertEqual(loom.Dataset([[1.0]]).y.size, 0)
        first, second = digits.split(0.8)
        self.assertEqual((len(first), len(second)), (400, 100))
        history = net.fit(
            first, validation_data=second, epochs=5, optimizer=loom.Adam(1e-2), normalize="range"
        )
        self.assertGreater(history.epochs[-1].validation_accuracy, 0.8)

    def test_wrong_options_are_errors_by_name(self):
        x, y = points()
        for options, words in (
            ({"loss": "mean"}, "unknown loss 'mean'"),
            ({"optimizer": "magic"}, "unknown optimizer 'magic'"),
            ({"optimizer": loom.Adam(-1.0)}, "rate is -1.0, must be 0 or more"),
            ({"epochs": 0}, "epochs is 0"),
            ({"batch": 0}, "batch is 0"),
            ({"schedule": "waves"}, "unknown schedule 'waves'"),
        ):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                small().fit(x, y, **options)
        with self.assertRaisesRegex(loom.InvalidArgumentError, "numbers as targets"):
            small().fit(x, y, loss="mse")


if __name__ == "__main__":
    unittest.main()
