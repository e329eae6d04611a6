"""What the native library gives for the cases of tests/web/suite.mjs, as JSON: texts, losses, bits.

  LOOM_LIBRARY=build/dev/libloom.so PYTHONPATH=bindings/python python3 tests/web/native.py
"""

import ctypes
import hashlib
import json
import struct
import sys

import loom
from loom import _ffi
from loom._library import check, handle_from, lib, sized, text_from

PROMPT = "Once upon a time"
DRAWN = {"temperature": 0.8, "top_k": 40, "seed": 7}


def bits(values) -> str:
    """Hash of f32 values as they lie in memory, little-endian."""
    flat = []

    def walk(value):
        if isinstance(value, (list, tuple)):
            for inner in value:
                walk(inner)
        else:
            flat.append(value)

    walk(values.tolist() if hasattr(values, "tolist") else values)
    return hashlib.sha256(struct.pack(f"<{len(flat)}f", *flat)).hexdigest()


def digits() -> dict:
    rows = [loom.Dense(784, 32, activation="relu"), loom.Dense(32, 10)]
    net = loom.Sequential(rows, input=784, seed=3)
    folder = "examples/data/"
    train, test = (
        loom.Dataset.from_file(
            f"{folder}digits{part}.gz", net, labels=f"{folder}digit-labels{part}.gz"
        )
        for part in ("", "-test")
    )
    trainer = loom.Trainer(net, optimizer=loom.Adam(1e-3), batch=50, seed=1)
    history = trainer.fit(train, test, epochs=3)
    return {
        "losses": [e.train_loss for e in history.epochs],
        "validation": [e.validation_loss for e in history.epochs],
        "accuracy": history.epochs[-1].validation_accuracy,
        "hash": trainer.weights_hash(),
        "outputs": bits(net.predict(test.x)),
        "file": hashlib.sha256(net.save_bytes("entity", dtype="int8")).hexdigest(),
    }


def stories() -> dict:
    llm = loom.LLM("models/stories.entity")
    likeliest = llm.generate(PROMPT, max_tokens=40)
    drawn = llm.generate(PROMPT, max_tokens=60, **DRAWN)
    return {
        "ids": likeliest.token_ids,
        "likeliest": str(likeliest),
        "drawn": str(drawn),
        "logits": bits(llm.logits(PROMPT)),
    }


def array_from(function, *arguments) -> "list[float]":
    """The values of a float32 array that a call gives."""
    array = handle_from(function, *arguments)
    view = _ffi.loom_tensor()
    check(lib.loom_array_view(array, ctypes.byref(view)))
    count = 1
    for i in range(view.rank):
        count *= view.shape[i]
    values = list(ctypes.cast(view.data, ctypes.POINTER(ctypes.c_float))[:count])
    lib.loom_array_free(array)
    return values


def evolution() -> dict:
    """A population that learns XOR, by the functions of the C interface."""
    options = sized(_ffi.loom_neat_options, inputs=2, population=60, has_seed=1, seed=7)
    population = handle_from(lib.loom_population_create, ctypes.byref(options))
    x = (ctypes.c_float * 8)(0, 0, 0, 1, 1, 0, 1, 1)
    rows = _ffi.loom_tensor(
        dtype=_ffi.DTYPE["float32"],
        rank=2,
        shape=(ctypes.c_int64 * 2)(4, 2),
        data=ctypes.cast(x, ctypes.c_void_p),
    )
    for _ in range(40):
        y = array_from(lib.loom_population_run, population, ctypes.byref(rows))
        fitness = (ctypes.c_double * 60)()
        for genome in range(60):
            off = sum((y[genome * 4 + i] - wanted) ** 2 / 4 for i, wanted in enumerate((0, 1, 1, 0)))
            fitness[genome] = 1 / (1 + off)
        check(lib.loom_population_tell(population, fitness, 60))
    best = handle_from(lib.loom_population_best, population)
    out = {"best": text_from(lib.loom_genome_json, best)}
    lib.loom_genome_free(best)
    lib.loom_population_free(population)
    return out


whole = {"digits": digits(), "stories": stories(), "evolution": evolution()}
json.dump(whole, sys.stdout, indent=1)
print()
