"""Results of the native library for the cases of tests/web/suite.mjs, as JSON: texts, losses, bits.

  LOOM_LIBRARY=build/dev/libloom.so PYTHONPATH=bindings/python python3 tests/web/native.py [--site]

--site: only the hashes of the page "Same bits" (web/native.json). Without it they are under "site".
"""

import ctypes
import hashlib
import json
import struct
import sys

import loom
from loom import _ffi
from loom._library import check, handle_from, lib, report, sized, text_from

PROMPT = "Once upon a time"
DRAWN = {"temperature": 0.8, "top_k": 40, "seed": 7}


def bits(values) -> str:
    """Hash of f32 values in their memory layout, little-endian."""
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


def two_inputs() -> dict:
    """A network of two inputs and two outputs: trained on samples that have both, and run."""
    description = {
        "loom": 1,
        "input": [2],
        "layers": [
            {
                "type": "Graph",
                "nodes": [
                    {"name": "b", "type": "Input", "from": "input", "input": "b", "shape": [3]},
                    {"name": "both", "from": ["input", "b"], "type": "Concat", "axis": 1},
                    {"name": "y", "type": "Dense", "in": 5, "out": 2},
                    {"name": "twice", "from": ["y", "y"], "type": "Binary", "function": "add"},
                ],
                "outputs": ["y", "twice"],
            }
        ],
    }
    text = json.dumps(description)
    net = loom.Network.from_json(text, seed=4)
    # Lists, so that the standard library is enough.
    a, b, y = (
        [[float((i * m + j) % 5) for j in range(width)] for i in range(12)]
        for width, m in ((2, 1), (3, 2), (2, 3))
    )
    trainer = loom.Trainer(net, optimizer=loom.Adam(0.01), batch=4, seed=1)
    samples = loom.Dataset({"input": a, "b": b}, y)
    losses = [e.train_loss for e in trainer.fit(samples, epochs=3).epochs]
    step = trainer.step(samples.split(0.25)[0])[0]
    out = net.session(max_batch=12).run({"input": a, "b": b})
    return {
        "network": text,
        "losses": losses,
        "step": step,
        "outputs": {name: bits(values) for name, values in out.items()},
    }


def array_from(function, *arguments) -> "list[float]":
    """The values of a float32 array from a call."""
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
            answers = zip(y[genome * 4 : genome * 4 + 4], (0, 1, 1, 0))
            off = sum((got - wanted) ** 2 / 4 for got, wanted in answers)
            fitness[genome] = 1 / (1 + off)
        check(lib.loom_population_tell(population, fitness, 60))
    best = handle_from(lib.loom_population_best, population)
    out = {
        "best": text_from(lib.loom_genome_json, best),
        "outputs": bits(array_from(lib.loom_genome_run, best, ctypes.byref(rows))),
    }
    lib.loom_genome_free(best)
    lib.loom_population_free(population)
    return out


def bits_table() -> dict:
    """Hashes of logits after the last of 113 tokens, of random weights in several number types."""
    out = {}
    for dtype in ("float32", "bfloat16", "q8_0", "q4_0", "ternary", "q4_k", "q6_k"):
        model = handle_from(lib.loom_model_random, None, b"shakespeare", _ffi.DTYPE[dtype], 1)
        info = report(_ffi.loom_model_info, lib.loom_model_get_info, model)
        session = handle_from(lib.loom_model_start, model, None)
        ids = (ctypes.c_int32 * 113)(*((i * 7919 + 13) % info.vocab for i in range(113)))
        check(lib.loom_model_session_feed(session, ids, 113))
        at, count = ctypes.POINTER(ctypes.c_float)(), ctypes.c_int64()
        check(lib.loom_model_session_logits(session, ctypes.byref(at), ctypes.byref(count)))
        out[dtype] = bits(at[: count.value])
        lib.loom_model_session_free(session)
        lib.loom_model_free(model)
    return {"logits": out}


def site_table(whole: dict) -> dict:
    """web/native.json: one hash for each line of the page "Same bits"."""
    return {
        "logits": whole["bits"]["logits"],
        "weights": whole["digits"]["hash"],
        "outputs": whole["digits"]["outputs"],
        "story": hashlib.sha256(whole["stories"]["drawn"].encode()).hexdigest(),
        "evolved": whole["evolution"]["outputs"],
    }


results = {
    "digits": digits(),
    "stories": stories(),
    "two_inputs": two_inputs(),
    "evolution": evolution(),
    "bits": bits_table(),
}
results["site"] = site_table(results)
json.dump(results["site"] if "--site" in sys.argv[1:] else results, sys.stdout, indent=1)
print()
