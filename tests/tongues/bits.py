"""Prints what a network, its training and a story come to, as tests/capi/bits.c does; no NumPy."""

import array
import os
import struct
import sys

import loom


def float32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def points():
    state, x, y = 88172645463325252, array.array("f"), array.array("i")
    for _ in range(240):
        row = []
        for _ in range(4):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            row.append(float32((state >> 40) / 2**23 - 1))
        first, second = float32(row[0] + row[1]), float32(row[2] - row[3])
        y.append(0 if first > float32(0.3) else 1 if second > 0 else 2)
        x.extend(row)
    return memoryview(x).cast("B").cast("f", (240, 4)), y


def print_outputs(net, x) -> None:
    y = net.predict(x)  # of NumPy, where that is installed
    print("outputs", (y.memoryview() if isinstance(y, loom.Array) else y).tobytes().hex())


def main() -> None:
    x, y = points()
    layers = [loom.Dense(4, 16, activation="tanh"), loom.Dense(16, 3)]
    net = loom.Sequential(layers, input=4, seed=7)
    print_outputs(net, x)
    with loom.Trainer(net, optimizer=loom.Adam(1e-2)) as trainer:
        trainer.fit(loom.Dataset(x, y), epochs=3)
        print("trained", trainer.weights_hash())
    print_outputs(net, x)
    path = os.environ.get("LOOM_TEST_MODEL", "models/stories.entity")
    options = {"max_tokens": 60, "temperature": 0.8, "seed": 7}
    sys.stdout.write("story ")
    for token in loom.LLM(path).stream("Once upon a time", **options):
        sys.stdout.write(token)
    print()


if __name__ == "__main__":
    main()
