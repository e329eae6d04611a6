"""Processes: Ctrl-C reaches what runs, and children of a process that used Loom compute."""

import concurrent.futures
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import unittest
import unittest.mock

import loom
import numpy as np
from support import STORIES, Scratch, points

SECONDS = 300  # of what ends by itself however busy the machine is

BEGIN = """
import os, signal, threading
import loom
import numpy as np
x = np.random.default_rng(1).standard_normal((256, 8)).astype(np.float32)
y = np.arange(256) % 3
net = loom.Sequential([loom.Dense(8, 32, activation="tanh"), loom.Dense(32, 3)], input=8)
def after(seconds):
    # The parent sends the signal when it has read the line. The moments differ on purpose; none of
    # them is wrong, so nothing waits for time.
    threading.Timer(seconds, lambda: print("begun", flush=True)).start()
"""


def small():
    return loom.Sequential([loom.Dense(4, 16, activation="tanh"), loom.Dense(16, 3)], input=4)


class CtrlC(unittest.TestCase):
    """An endless program is interrupted again and again, at different moments."""

    def interrupted(self, body, times=1):
        for moment in range(times):
            program = subprocess.Popen(
                [sys.executable, "-c", BEGIN + textwrap.dedent(body)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "MOMENT": str(moment)},
            )
            try:
                self.assertEqual(program.stdout.readline(), "begun\n")
                program.send_signal(signal.SIGINT)
                out, errors = program.communicate(timeout=SECONDS)
            finally:
                program.kill()
                program.wait()
            self.assertIn("stopped: KeyboardInterrupt", out, errors)
            self.assertNotIn("Exception ignored", errors)

    FIT = """
    after(0.05 + 0.01 * int(os.environ["MOMENT"]))
    try:
        net.fit(x, y, epochs=100_000_000, batch=32{more})
    except BaseException as error:
        print("stopped:", type(error).__name__, flush=True)
    """

    def test_reaches_a_fit_without_callbacks(self):
        self.interrupted(self.FIT.format(more=""), times=3)

    def test_reaches_a_fit_with_callbacks(self):
        self.interrupted(self.FIT.format(more=", on_epoch=lambda e: None"), times=2)
        self.interrupted(self.FIT.format(more=", on_batch=lambda *a: None"), times=6)

    def test_reaches_a_fit_that_validates(self):
        self.interrupted(self.FIT.format(more=", validation_split=0.5"), times=2)

    def test_reaches_a_prediction_between_its_pieces(self):
        pieces, run = [], loom.Session.run

        def counted(session, x, *others):
            pieces.append(len(x))
            if len(pieces) == 3:
                signal.raise_signal(signal.SIGINT)
            return run(session, x, *others)

        with unittest.mock.patch.object(loom.Session, "run", counted):
            with self.assertRaises(KeyboardInterrupt):
                small().predict(np.zeros((2560, 4), np.float32))
            self.assertEqual(pieces, [256] * 3)

    def test_pieces_of_a_prediction_have_the_bits_of_the_whole(self):
        x = np.random.default_rng(2).standard_normal((1000, 4)).astype(np.float32)
        net = small()
        self.assertTrue(np.array_equal(net.predict(x, batch=96), net.predict(x, batch=1000)))

    def test_reaches_a_generation(self):
        body = f"""
        model = loom.LLM({str(STORIES)!r}, context=512)
        after(0.05)
        try:
            while True:
                model.generate("Once", max_tokens=400, temperature=1.0, ignore_eos=True)
        except BaseException as error:
            print("stopped:", type(error).__name__, flush=True)
        """
        self.interrupted(body, times=2)

    def test_another_handler_stays_and_does_not_stop_the_fit(self):
        body = """
        seen = []
        signal.signal(signal.SIGINT, lambda *_: seen.append(1))
        after(0.05)
        try:
            net.fit(x, y, epochs=100_000_000, on_batch=lambda *a: False if seen else None)
        except loom.CancelledError:
            print("stopped: KeyboardInterrupt, seen", len(seen), flush=True)
        """
        self.interrupted(body)


_shared = None


def _use_shared(x):
    return _shared.predict(x)


def _train_shared(seed):
    x, y = points()
    net = small()
    return net.fit(x, y, epochs=2, seed=seed).history["loss"]


@unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
class Fork(Scratch):
    def setUp(self):
        super().setUp()
        global _shared
        self.x, y = points()
        _shared = small()
        _shared.fit(self.x, y, epochs=2)  # all threads are there
        self.expected = _shared.predict(self.x)
        self.fork = multiprocessing.get_context("fork")

    def test_a_pool_of_processes_predicts_with_the_network_of_its_parent(self):
        with self.fork.Pool(3) as pool:
            for found in pool.map_async(_use_shared, [self.x] * 6).get(SECONDS):
                np.testing.assert_array_equal(found, self.expected)
        np.testing.assert_array_equal(_shared.predict(self.x), self.expected)

    def test_children_train_as_the_parent_does(self):
        expected = _train_shared(3)
        with self.fork.Pool(2) as pool:
            for found in pool.map_async(_train_shared, [3, 3]).get(SECONDS):
                self.assertEqual(found, expected)

    def test_executors_and_bare_children(self):
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=self.fork) as pool:
            np.testing.assert_array_equal(
                pool.submit(_use_shared, self.x).result(SECONDS), self.expected
            )
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            os._exit(0 if np.array_equal(_shared.predict(self.x), self.expected) else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_engines_of_any_number_of_threads(self):
        for threads in (1, 2, 3, 8):
            engine = loom.Engine(threads=threads)
            net = loom.Sequential([loom.Dense(4, 3)], input=4, seed=1, engine=engine)
            expected = net.predict(self.x)
            child = os.fork()
            if child == 0:
                signal.alarm(SECONDS)
                os._exit(0 if np.array_equal(net.predict(self.x), expected) else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0, threads)


if __name__ == "__main__":
    unittest.main()
