"""The package as a library: errors by code, threads, memory, life without NumPy."""

import os
import shutil
import subprocess
import sys
import threading
import time
import unittest
from importlib import metadata

import loom
import numpy as np
from loom import _ffi, _library
from loom._library import lib
from loom.errors import BY_CODE
from support import STORIES, Scratch, points, run, same_bits

WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None
import loom
net = loom.Sequential([loom.Dense(2, 1)], input=2)
net.set_parameter("(0, 0, 0, 0)/weight", [[2.0, -3.0]])
net.set_parameter("(0, 0, 0, 0)/bias", [0.5])
y = net.predict([[1.0, 1.0], [4.0, 2.0]])
assert type(y) is loom.Array and y.shape == (2, 1) and y.dtype == "float32", y
assert y.tolist() == [[-0.5], [2.5]] and y.memoryview()[1, 0] == 2.5
import array
row = memoryview(array.array("f", [1, 1])).cast("B").cast("f", (1, 2))
assert net.predict(row).tolist() == [[-0.5]]
assert net.predict(y.__class__.from_dlpack(net.parameter("(0, 0, 0, 0)/weight"))).shape == (1, 1)
net.fit([[1.0, 0.0], [0.0, 1.0]], [[1.0], [0.0]], epochs=2)
try:
    net.predict([[1.0, 2.0], [3.0]])
except ValueError as error:
    assert "rows differ" in str(error)
else:
    raise AssertionError("a ragged list is not a tensor")
print("fine")
"""


class Symbols(unittest.TestCase):
    @unittest.skipUnless(shutil.which("nm"), "nm is not installed")
    def test_the_library_shows_what_the_description_names_and_no_other_c_symbol(self):
        found = run("nm", "-D", "--defined-only", _library._path()).splitlines()
        names = {line.split()[-1].split("@")[0] for line in found}
        in_c = {name for name in names if not name.startswith(("_ZN", "_ZT", "_ZNK"))}
        self.assertEqual(in_c, {*_ffi.SIGNATURES, "loom_get_api"})


class Wheel(unittest.TestCase):
    def test_the_licenses_of_what_is_compiled_into_the_library_are_in_the_wheel(self):
        files = metadata.files("loom-engine") or []
        texts = {file.name: file.read_text() for file in files if "licenses" in file.parts}
        self.assertEqual(set(texts), {"LICENSE", "NOTICE"})
        for name in ("nlohmann-json", "PCRE2", "xxHash", "zlib", "FlatBuffers"):
            self.assertIn(name, texts["NOTICE"])


class Errors(Scratch):
    def test_every_code_has_a_class(self):
        self.assertEqual(sorted(BY_CODE), list(range(1, 10)))
        for code, error in BY_CODE.items():
            name = lib.loom_status_name(code).decode().split()[0].split("/")[0]
            self.assertTrue(error.__name__.lower().startswith(name), (name, error))
            self.assertTrue(issubclass(error, loom.LoomError))

    def test_codes_become_exceptions_with_one_line(self):
        file = self.folder / "bad.entity"
        file.write_bytes(b"LOOM" * 100)
        for error, builtin, call in (
            (loom.NotFoundError, LookupError, lambda: loom.Network.load("/nowhere.entity")),
            (loom.BadFileError, ValueError, lambda: loom.Network.load(file)),
            (loom.BadFileError, ValueError, lambda: loom.Network.from_json("{")),
            (loom.InvalidArgumentError, ValueError, lambda: loom.Engine(-1)),
            (loom.UnsupportedError, NotImplementedError, lambda: loom.Engine(isa="z80")),
            (loom.InvalidArgumentError, ValueError,
             lambda: loom.Sequential([loom.Dense(4, 3), loom.Dense(4, 3)], input=4)),
        ):  # fmt: skip
            with self.assertRaises(error) as caught:
                call()
            self.assertIsInstance(caught.exception, builtin)
            self.assertEqual(str(caught.exception).count("\n"), 0)
            self.assertGreater(len(str(caught.exception)), 10)

    def test_a_memory_limit_is_kept(self):
        x, _ = points()
        engine = loom.Engine(memory_limit=1000)
        net = loom.Sequential([loom.Dense(4, 4000)], input=4)
        net.save(self.folder / "net.npz")
        with self.assertRaises(loom.OutOfMemoryError):
            loom.Network.load(self.folder / "net.npz", engine=engine)

    def test_a_wrong_library_is_an_import_error(self):
        ran = subprocess.run(
            [sys.executable, "-c", "import loom"], capture_output=True, text=True,
            env={**os.environ, "LOOM_LIBRARY": "/nowhere.so"},
        )  # fmt: skip
        self.assertIn("ImportError: /nowhere.so is not the library", ran.stderr)


class Threads(unittest.TestCase):
    def test_calls_release_the_lock_of_the_interpreter(self):
        net = loom.Sequential([loom.Dense(1024, 1024) for _ in range(3)], input=1024)
        x, out = np.ones((1024, 1024), np.float32), np.empty((1024, 1024), np.float32)
        seen, end = threading.Event(), time.monotonic() + 120

        def work():
            with net.session(max_batch=64) as session:
                while not seen.is_set() and time.monotonic() < end:
                    out.fill(np.nan)
                    session.run(x, out)

        worker = threading.Thread(target=work)
        out.fill(np.nan)
        worker.start()
        # Rows come in order. Only in the middle of a call are some of them there. If the lock were
        # held, this thread would run before and after calls only.
        while worker.is_alive():
            first, last = out[:: len(out) - 1, 0].tolist()
            if first == first and last != last:
                seen.set()
            time.sleep(0.0005)
        worker.join()
        self.assertTrue(seen.is_set())

    def test_threads_with_engines_of_their_own_get_equal_bits(self):
        x, y = points()
        expected, found = None, []

        def work():
            engine = loom.Engine(1)
            net = loom.Sequential(
                [loom.Dense(4, 16, activation="tanh"), loom.Dense(16, 3)], input=4, engine=engine
            )
            net.fit(x, y, epochs=5)
            text = loom.LLM(STORIES, engine=engine).generate("One day", max_tokens=20)
            found.append((net.predict(x), text))

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        work()
        expected = found[-1]
        self.assertEqual(len(found), 5)
        for y_found, text in found:
            self.assertTrue(same_bits(y_found, expected[0]))
            self.assertEqual(text, expected[1])

    def test_sessions_of_one_engine_take_turns(self):
        x, _ = points()
        net = loom.Sequential([loom.Dense(4, 3)], input=4)
        expected, wrong = net.predict(x), []

        def work():
            with net.session(max_batch=8) as session:
                for _ in range(50):
                    if not same_bits(session.run(x), expected):
                        wrong.append(1)

        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(wrong, [])

    def test_errors_of_two_threads_do_not_mix(self):
        found = []

        def work(name):
            for _ in range(200):
                try:
                    loom.Network.load(f"/nowhere/{name}.entity")
                except loom.NotFoundError as error:
                    if f"/{name}." not in str(error):
                        found.append(str(error))

        workers = [threading.Thread(target=work, args=(n,)) for n in "ab"]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(found, [])


class Memory(unittest.TestCase):
    @unittest.skipUnless(os.path.exists("/proc/self/statm"), "this system does not tell")
    def test_ten_thousand_objects_leave_nothing(self):
        description = loom.Sequential([loom.Dense(4, 16), loom.Dense(16, 3)], input=4).json()
        x = np.ones((2, 4), np.float32)

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

        def cycle():
            net = loom.Network.from_json(description)
            net.predict(x)
            for _ in range(4):
                net.summary(), net.json()
            try:
                net.parameter("none")
            except loom.NotFoundError:
                pass

        for _ in range(500):
            cycle()
        before = resident()
        for _ in range(10000):
            cycle()
        self.assertLess(resident() - before, 2 << 20)

    def test_without_numpy_lists_and_buffers_do(self):
        ran = subprocess.run(
            [sys.executable, "-X", "dev", "-c", WITHOUT_NUMPY], capture_output=True, text=True
        )
        self.assertEqual((ran.stdout, ran.stderr), ("fine\n", ""))


if __name__ == "__main__":
    unittest.main()
