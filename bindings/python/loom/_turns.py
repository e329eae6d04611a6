"""Messages of a conversation, in the shape of OpenAI's clients and of transformers, as JSON."""

import json
from typing import Any, Dict, Mapping, Sequence, Tuple, Union

# {"role", "content" (text, None or a list of parts), "tool_calls", "tool_call_id", "name",
# "reasoning_content"} and any member that a template reads; or (role, content).
Turn = Union[Mapping[str, Any], Tuple[str, Any]]


def _plain(value: Any) -> Any:
    """Objects of clients as plain data."""
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(exclude_none=True)
    raise TypeError(f"a {type(value).__name__} is not plain data")


def json_of(value: Any, name: str) -> str:
    """A value as JSON. A text is JSON already."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be plain data: {error}") from None


def _member(value: Any, name: str) -> Any:
    json_of([value], name)
    return value


def _message(turn: Any, at: int) -> Dict[str, Any]:
    if not isinstance(turn, (Mapping, str)) and isinstance(turn, Sequence):
        if len(turn) != 2:
            raise ValueError(f"turns[{at}] must be (role, content); got {len(turn)} parts")
        turn = {"role": turn[0], "content": turn[1]}
    if not isinstance(turn, Mapping):
        try:
            turn = _plain(turn)
        except TypeError:
            raise ValueError(
                f"turns[{at}] must be a dict or (role, content); got {type(turn).__name__}"
            ) from None
    return {key: _member(value, f"turns[{at}].{key}") for key, value in turn.items()}


def messages_json(turns: Union[str, Sequence[Turn]]) -> str:
    """Turns as C takes them. A value that does not fit is an error that names it."""
    return json_of([_message(turn, at) for at, turn in enumerate(turns)], "turns")
