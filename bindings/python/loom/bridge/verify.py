"""A proof repeated on any machine: python -m loom.bridge.verify NET.entity PROOF.npz

NET is the saved network and PROOF what Proof.save() wrote. Exit code 0: the file computes the bits
that it did where it was absorbed, within the tolerance of what the source framework said; 5: not.
"""

import json
import sys
from typing import List

import numpy as np

from ..network import Network
from .proof import ask, compare, digest


def verify(network_path: str, proof_path: str) -> bool:
    """Prints a line for each output; whether all hold."""
    with np.load(proof_path) as held:
        report = json.loads(held["report"].tobytes())
        inputs = [held[f"input{i}"] for i in range(sum(n.startswith("input") for n in held.files))]
        expected = [held[f"expected{i}"] for i in range(len(report["outputs"]))]
    got = ask(Network.load(network_path), inputs)
    same = digest(got) == report["rungs"]["engine"]
    print(f"{report['source']}: {'the same bits' if same else 'OTHER BITS'}")
    whole = same and len(got) == len(expected)
    for i, (wanted, found) in enumerate(zip(expected, got)):
        said = compare(wanted, found, report["tolerance"]["abs"], report["tolerance"]["rel"])
        verdict = "holds" if said["pass"] else "FAILED"
        print(f"output {i}: max abs {said.get('max_abs', float('inf')):.3g}, {verdict}")
        whole = whole and bool(said["pass"])
    return whole


def main(arguments: List[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    return 0 if verify(*arguments) else 5


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
