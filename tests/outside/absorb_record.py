"""Writes tests/data/absorbed: small networks of every planet with their proofs, for machines
without a framework. tests/python/test_proof.py and `loom verify proof` repeat them.

python tests/outside/absorb_record.py [PLANET ...]    with their frameworks installed
"""

import re
import sys
import warnings
from pathlib import Path

import loom
from absorb_check import cases

warnings.simplefilter("ignore")
FOLDER = Path(__file__).resolve().parent.parent / "data" / "absorbed"
WANTED = {
    "sklearn": ["RandomForestClassifier of 3 classes", "MLPClassifier of 3 classes", "Pipeline 0"],
    "lightgbm": ["3 classes, sets and missing values"],
    "xgboost": ["2 classes"],
    "torch": ["square dense, no bias", "LSTM tagger", "GRU tagger", "siamese"],
    "keras": ["strides, same", "LSTM, both ways", "GRU, reset before"],
    "jax": ["linen causal block"],
}


def main():
    FOLDER.mkdir(exist_ok=True)
    for planet, name, model, inputs in cases(sys.argv[1:]):
        if name not in WANTED[planet]:
            continue
        path = FOLDER / f"{planet}_{re.sub('[^a-z0-9]+', '_', name.lower())}.entity"
        loom.absorb(model, inputs).save(path)
        print(f"{path.name}: {path.stat().st_size} bytes; {loom.verify_proof(path)}")


if __name__ == "__main__":
    main()
