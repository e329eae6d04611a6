#!/usr/bin/env python3
"""Checks with NumPy the NPZ file that our writer made, and keeps it as a golden file.

  tools/goldens/npy_check.py tests/io/golden/written.npz

The values are those of tests/io/npy_write_test.cpp: byte i of an array is (37 i + 1) mod 64.
"""

import sys

import numpy as np

ARRAYS = {
    "scalar": ("<f8", ()),
    "vector": ("<f4", (5,)),
    "matrix": ("<i2", (2, 3)),
    "none": ("|u1", (0, 4)),
    "truth": ("|b1", (3,)),
    "half/of it": ("<f2", (2, 1, 2)),
    "ids": ("<i8", (2,)),
}


def expected(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    size = np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64))
    raw = bytes((37 * i + 1) % 64 for i in range(size))
    if dtype == "|b1":
        raw = bytes(b & 1 for b in raw)
    return np.frombuffer(raw, dtype=dtype).reshape(shape)


def main() -> int:
    with np.load(sys.argv[1], allow_pickle=False) as file:
        assert list(file.keys()) == list(ARRAYS), list(file.keys())
        for name, (dtype, shape) in ARRAYS.items():
            want = expected(dtype, shape)
            assert file[name].dtype == want.dtype, name
            assert file[name].shape == want.shape, name
            assert file[name].tobytes() == want.tobytes(), name
    print(f"{len(ARRAYS)} arrays as NumPy {np.__version__} reads them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
