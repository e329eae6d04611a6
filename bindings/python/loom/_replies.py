"""Parsed replies, and texts that are written together."""

import ctypes
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Sequence

from . import _ffi
from ._library import Callbacks, Handle, check, encoded, handle_from, lib, sized, text_from

if TYPE_CHECKING:
    from .llm import Generation


class ToolCall(NamedTuple):
    """A call of a tool that a model wrote."""

    name: str
    arguments: str  # the text of a JSON object
    problem: str  # what is wrong with it; "" means nothing


class Reply(NamedTuple):
    """The reply of a model in a conversation."""

    text: str
    reasoning: str
    calls: List[ToolCall]


class _Parser(Handle):
    _FREE = "loom_reply_parser_free"


def read_reply(handle: int, text: str) -> Reply:
    """All of a reply at once; takes the parser."""
    pieces: Dict[int, List[str]] = {kind: [] for kind in _ffi.REPLY_KIND.values()}
    calls: List[List[str]] = []

    def seen(kind: int, piece: bytes, call: int) -> None:
        words = piece.decode("utf-8", "replace")
        if kind == _ffi.REPLY_KIND["call"]:
            calls.append([words, ""])
        elif kind == _ffi.REPLY_KIND["arguments"]:
            calls[call][1] += words
        else:
            pieces.setdefault(kind, []).append(words)

    callbacks = Callbacks()
    sink = callbacks.wrap(_ffi.loom_reply_fn, seen)
    with _Parser(handle) as parser:
        callbacks.check(lib.loom_reply_parser_feed(parser.handle, encoded(text), sink, None))
        callbacks.check(lib.loom_reply_parser_finish(parser.handle, sink, None))
        told = [
            ToolCall(name, arguments, text_from(lib.loom_reply_parser_problem, parser.handle, i))
            for i, (name, arguments) in enumerate(calls)
        ]
    kinds = _ffi.REPLY_KIND
    return Reply("".join(pieces[kinds["text"]]), "".join(pieces[kinds["reasoning"]]), told)


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
