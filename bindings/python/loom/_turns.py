"""Turns of a conversation, as the C interface takes them: a role and a text."""

from typing import Any, Mapping, Sequence, Tuple, Union

Turn = Union[Mapping[str, str], Tuple[str, str]]


def plain_turn(turn: Turn, at: int) -> Tuple[str, str]:
    """A turn as C has it: a role and a text. A value that does not fit is an error that names
    it."""
    pair: Sequence[Any]
    if not isinstance(turn, Mapping):
        pair = turn
    else:
        for key, value in turn.items():
            if key not in ("role", "content") and value is not None:
                raise ValueError(
                    f"turns[{at}] has {key!r}, and turns are role and content here; leave it out, "
                    "or send the chat to `loom serve`, which reads it"
                )
        pair = (turn.get("role"), turn.get("content"))
    if len(pair) != 2:
        raise ValueError(f"turns[{at}] must be (role, content); got {len(pair)} parts")
    for name, part in zip(("role", "content"), pair):
        if not isinstance(part, str):
            raise ValueError(
                f"turns[{at}].{name} must be a text; got {type(part).__name__}; join its parts"
            )
    return str(pair[0]), str(pair[1])
