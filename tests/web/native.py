"""What the native library gives for the cases of tests/web/suite.mjs, as JSON: texts, losses, bits.

  LOOM_LIBRARY=build/dev/libloom.so PYTHONPATH=bindings/python python3 tests/web/native.py
"""

import hashlib
import json
import struct
import sys

import loom

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


json.dump({"digits": digits(), "stories": stories()}, sys.stdout, indent=1)
print()
