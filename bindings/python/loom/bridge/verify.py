"""A proof repeated on any machine: python -m loom.bridge.verify NET.entity

The line and the exit code of `loom verify proof`. 0: the file computes the bits that it did where
it was absorbed, within the tolerance of what the source framework said; 5: not; 1: it has no proof,
or cannot be read.
"""

import sys
from typing import List

from ..errors import LoomError
from .proof import verify_proof


def main(arguments: List[str]) -> int:
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print(__doc__, file=sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    try:
        proof = verify_proof(arguments[0])
    except LoomError as error:
        print(f"loom: {error}", file=sys.stderr)
        return 1
    print(f"{arguments[0]}: {proof}")
    return 0 if proof.passed else 5


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
