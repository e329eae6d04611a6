"""Parsed replies, and texts that are written together."""

import ctypes
import json
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Sequence

from . import _ffi
from ._library import Handle, check, handle_from, lib, sized

if TYPE_CHECKING:
    from .llm import Generation


class ToolCall(NamedTuple):
    """A call of a tool that a model wrote."""

    name: str
    arguments: str  # the text of a JSON object
    problem: str  # what is wrong with it; "" means nothing
    id: str = ""  # equal for equal prompts and replies; a turn of role "tool" answers it


class Reply(NamedTuple):
    """The reply of a model in a conversation."""

    text: str
    reasoning: str
    calls: List[ToolCall]
    message: Dict[str, Any]  # the turn: role, content, reasoning_content, tool_calls


def read_reply(json_text: str) -> Reply:
    """A reply from the message that the library made of it."""
    message = json.loads(json_text)
    calls = []
    for one in message.get("tool_calls", []):
        function = one["function"]
        problem = one.pop("problem", "")
        calls.append(ToolCall(function["name"], function["arguments"], problem, one["id"]))
    reasoning = message.get("reasoning_content", "")
    return Reply(message["content"] or "", reasoning, calls, message)


def call_rules(choice: Any) -> Dict[str, Any]:
    """Keywords of LLM.call_grammar() for a `tool_choice`: "auto", "required", or a function by
    name, as text or as OpenAI's clients write it."""
    if choice in ("auto", None):
        return {}
    if choice in ("required", "any"):
        return {"required": True}
    name = choice
    if isinstance(choice, Mapping):
        name = choice.get("function", choice).get("name")
    if not isinstance(name, str):
        raise ValueError(
            f'tool_choice must be "auto", "none", "required" or the name of a function; '
            f"got {choice!r}"
        )
    return {"required": True, "parallel": False, "allowed": [name]}


class Batch(Handle):
    """Texts of one model that share each pass."""

    _FREE = "loom_batch_free"

    def __init__(self, model: Handle, sequences: int) -> None:
        how = sized(_ffi.loom_batch_options, sequences=sequences)
        super().__init__(handle_from(lib.loom_model_batch, model.handle, ctypes.byref(how)))
        self._sequences = sequences

    def write(self, prompts: Sequence[Sequence[int]], options: Any) -> "List[Generation]":
        """One text for each prompt, in their order; whichever ends makes room for the next."""
        from .llm import _generation

        waiting, made = list(enumerate(prompts))[::-1], {}
        at: Dict[int, int] = {}  # sequence -> index of its prompt
        while waiting or at:
            for sequence in range(self._sequences):
                if sequence not in at and waiting:
                    index, ids = waiting.pop()
                    prompt = (ctypes.c_int32 * len(ids))(*ids)
                    check(lib.loom_batch_rewind(self.handle, sequence, 0))
                    check(
                        lib.loom_batch_start(
                            self.handle, sequence, prompt, len(ids), ctypes.byref(options)
                        )
                    )
                    at[sequence] = index
            check(lib.loom_batch_step(self.handle))
            for sequence in [s for s in at if not self._running(s)]:
                out = ctypes.c_void_p()
                check(lib.loom_batch_take(self.handle, sequence, ctypes.byref(out)))
                try:
                    made[at.pop(sequence)] = _generation(out)
                finally:
                    lib.loom_generation_free(out)
        return [made[i] for i in range(len(prompts))]

    def _running(self, sequence: int) -> bool:
        out = ctypes.c_int32()
        check(lib.loom_batch_is_running(self.handle, sequence, ctypes.byref(out)))
        return bool(out.value)
