"""LLM: a language model that writes, a token at a time if that is asked for."""

import ctypes
import html
import json
import queue
import sys
import threading
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from . import _ffi
from ._library import (
    Callbacks,
    FileBytes,
    Handle,
    check,
    encoded,
    handle_from,
    is_bytes,
    lib,
    number_of,
    report,
    sized,
    text_from,
)
from ._model import LookupText, ModelCalls, Prompt, Rules, c_ids, taken_ids
from ._replies import Batch, Reply, call_rules, read_reply
from ._sampling import HANDLES, c_texts, generate_options
from ._turns import Turn, json_of, messages_json
from .arrays import dtype_name, dtype_number, numpy_module
from .engine import Engine, engine_handle
from .network import Path
from ._signatures import options_of
from .options import GENERATE_OPTIONS, GenerateKeywords

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .bridge.proof import Proof

_STOPPED = "stopped; `last` of the model has the text so far, and continue_() goes on after it"
_STOPS = {value: name for name, value in _ffi.STOP.items()}


# The figures of repr(), in this order.
_SHOWN = ("layers", "width", "heads", "kv_heads", "vocab", "bytes", "has_chat_template")


class Keywords(GenerateKeywords, total=False):
    """Keywords of LLM.generate()."""

    json_schema: Any
    rules: Optional[Rules]
    lookup_text: Optional[LookupText]
    on_token: "Optional[Callable[[Token], Any]]"
    on_prefill: Optional[Callable[[int, int], Any]]


class Token(str):
    """The text that a token adds, whole characters, with its id and, if asked for, its
    log-probability and the likeliest tokens there: [(id, logprob)], best first."""

    id: int
    logprob: Optional[float]
    top: List[Tuple[int, float]]


class Generation(str):
    """New text, with how it came to be."""

    token_ids: List[int]
    logprobs: List[float]
    stop: str  # "eos", "string", "length", "context" or "cancelled"
    prompt_tokens: int
    prefill_seconds: float
    decode_seconds: float
    reply: "Optional[Reply]" = None  # of LLM.chat()


class _Session(Handle):
    _FREE = "loom_model_session_free"


def _token(pointer: Any, logprobs: bool) -> Token:
    seen = pointer.contents
    made = Token(seen.text.decode("utf-8", "replace"))
    made.id = seen.id
    made.logprob = seen.logprob if logprobs else None
    made.top = [(seen.top[i].id, seen.top[i].logprob) for i in range(seen.top_count)]
    return made


def _generation(handle: Any) -> Generation:
    text, ids, scores = ctypes.c_char_p(), ctypes.POINTER(ctypes.c_int32)(), None
    count, size = ctypes.c_int64(), ctypes.c_int64()
    check(lib.loom_generation_text(handle, ctypes.byref(text), ctypes.byref(size)))
    made = Generation((text.value or b"").decode("utf-8", "replace"))
    check(lib.loom_generation_ids(handle, ctypes.byref(ids), ctypes.byref(count)))
    made.token_ids = ids[: count.value]
    scores = ctypes.POINTER(ctypes.c_float)()
    check(lib.loom_generation_logprobs(handle, ctypes.byref(scores), ctypes.byref(count)))
    made.logprobs = scores[: count.value]
    info = report(_ffi.loom_generation_info, lib.loom_generation_get_info, handle)
    made.stop = _STOPS.get(info.stop, "unknown")
    made.prompt_tokens = info.prompt_tokens
    made.prefill_seconds = info.prefill_seconds
    made.decode_seconds = info.decode_seconds
    return made


class LLM(ModelCalls):
    """An .entity file, a GGUF file, or a Hugging Face folder.

    Calls stand alone: each begins with an empty context. Calls of one LLM take turns; for several
    at the same time, make an LLM with an Engine of its own for each.
    """

    _FREE = "loom_model_free"
    proof: "Optional[Proof]" = None  # of one that loom.absorb() made
    last: Optional[Generation] = None  # the text of a generate() that Ctrl-C stopped

    def __init__(
        self,
        path: Union[Path, bytes],
        *,
        name: Optional[str] = None,
        dtype: Optional[str] = None,
        engine: Optional[Engine] = None,
        context: int = 0,
        activations: str = "automatic",
        chat_template: Optional[str] = None,
        rope_scaling: Optional[str] = None,
        lora: Union[str, Sequence[str]] = (),
        allow_nonfinite: bool = False,
        progress: Optional[Callable[[int, int], Any]] = None,
    ) -> None:
        """path: or the bytes of an .entity or GGUF file, which errors call `name`. dtype: None, as
        stored. context: positions; 0: the model's, at most 2048. activations: "q8", "f32", or as
        the engine says. chat_template: replaces that of the file. rope_scaling: of rotary
        positions, for contexts beyond those of the training: "linear:4", "dynamic:4", "yarn:4" or
        "none". lora: LoRA adapters, folders of PEFT: "PATH", or "PATH=0.5". allow_nonfinite:
        accepts weights that are NaN or infinite."""
        callbacks, model = Callbacks(), ctypes.c_void_p()
        adapters = [lora] if isinstance(lora, str) else list(lora)
        options = sized(
            _ffi.loom_model_options,
            has_dtype=dtype is not None,
            dtype=0 if dtype is None else dtype_number(dtype),
            progress=callbacks.wrap(_ffi.loom_progress_fn, progress),
            allow_nonfinite=allow_nonfinite,
            chat_template=None if chat_template is None else chat_template.encode(),
            rope_scaling=None if rope_scaling is None else rope_scaling.encode(),
            lora=c_texts(adapters),
            lora_count=len(adapters),
        )
        last = (ctypes.byref(options), ctypes.byref(model))
        if is_bytes(path):
            file = FileBytes(path, name)
            code = callbacks.run(
                lib.loom_model_load_memory, engine_handle(engine), *file.arguments, *last
            )
        else:
            code = callbacks.run(lib.loom_model_load, engine_handle(engine), encoded(path), *last)
        callbacks.check(code)
        super().__init__(model.value or 0)
        self._lock = threading.Lock()
        how = sized(
            _ffi.loom_model_session_options,
            context=context,
            activations=number_of(_ffi.ACTIVATIONS, activations, "activations"),
        )
        self._session = _Session(
            handle_from(lib.loom_model_start, self.handle, ctypes.byref(how))
        )

    def close(self) -> None:
        session = getattr(self, "_session", None)
        if session is not None:
            session.close()
        super().close()

    @property
    def info(self) -> Dict[str, Any]:
        """layers, width, heads, vocab, context, parameters, bytes, architecture, dtype, ..."""
        info = report(_ffi.loom_model_info, lib.loom_model_get_info, self.handle)
        out: Dict[str, Any] = {}
        for name in [row[0] for row in info._fields_[1:]]:
            value = getattr(info, name)
            out[name] = value.decode() if isinstance(value, bytes) else value
        for name in ("tied_head", "has_tokenizer", "has_chat_template"):
            out[name] = bool(out[name])
        out["dtype"] = dtype_name(info.dtype)
        return out

    # ---- text and tokens -------------------------------------------------------------------------

    def detokenize(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        return text_from(
            lib.loom_model_detokenize, self.handle, c_ids(ids), len(ids), int(skip_special)
        )

    def render_chat(
        self,
        turns: Sequence[Turn],
        *,
        reply: bool = True,
        continue_final_message: bool = False,
        date: Optional[str] = None,
        tools: Any = None,
        documents: Any = None,
        variables: Any = None,
    ) -> str:
        """The conversation as the model's chat template writes it.

        turns: dicts as for transformers and OpenAI: role, content (text, None or a list of parts),
        tool_calls, tool_call_id, name, reasoning_content, and anything else that the template
        reads; or pairs (role, content). tools, documents: lists of plain data. variables: a dict
        that the template sees too. continue_final_message: ends after the text of the last turn,
        which the model continues; replaces `reply`."""
        plain = (("tools", tools), ("documents", documents), ("variables", variables))
        more = {name: encoded(None if v is None else json_of(v, name)) for name, v in plain}
        options = sized(
            _ffi.loom_chat_options,
            no_reply=not reply,
            continue_final_message=continue_final_message,
            date=encoded(date),
            **more,
        )
        words = encoded(messages_json(turns))
        return text_from(
            lib.loom_model_render_messages, self.handle, words, ctypes.byref(options)
        )

    def tokenize_chat(
        self, turns: Sequence[Turn], *, reply: bool = True, continue_final_message: bool = False,
        date: Optional[str] = None, tools: Any = None, documents: Any = None, variables: Any = None,
    ) -> List[int]:  # fmt: skip
        """The ids of render_chat(), whose options these are."""
        text = self.render_chat(
            turns, reply=reply, continue_final_message=continue_final_message, date=date,
            tools=tools, documents=documents, variables=variables,
        )  # fmt: skip
        return self.tokenize(text, special_tokens=False)

    # ---- writing ---------------------------------------------------------------------------------

    def generate(
        self,
        prompt: Prompt,
        *,
        # options: generated from api/options, GenerateOptions but json_schema
        max_tokens: int = 256,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        repetition_window: int = 64,
        seed: int = 0,
        frequency_penalty: float = 0.0,
        presence_penalty: float = 0.0,
        no_repeat_ngram: int = 0,
        dry_multiplier: float = 0.0,
        dry_base: float = 1.75,
        dry_allowed_length: int = 2,
        dry_window: int = 0,
        dry_breakers: Sequence[str] = (),
        typical_p: float = 1.0,
        top_n_sigma: float = 0.0,
        xtc_probability: float = 0.0,
        xtc_threshold: float = 0.1,
        dynamic_range: float = 0.0,
        dynamic_exponent: float = 1.0,
        mirostat: int = 0,
        mirostat_tau: float = 5.0,
        mirostat_eta: float = 0.1,
        logit_bias: Optional[Mapping[int, float]] = None,
        banned_tokens: Sequence[int] = (),
        banned_strings: Sequence[str] = (),
        stop: Sequence[str] = (),
        eos_ids: Sequence[int] = (),
        ignore_eos: bool = False,
        special_text: bool = False,
        logprobs: bool = False,
        top_logprobs: int = 0,
        logprobs_of_draw: bool = False,
        shift_context: bool = False,
        keep_tokens: int = 0,
        shift_tokens: int = 0,
        grammar: str = "",
        lookup: bool = False,
        guesses: int = 8,
        guess_chance: float = 0.5,
        # end of options
        json_schema: Any = None,
        rules: Optional[Rules] = None,
        lookup_text: Optional[LookupText] = None,
        on_token: Optional[Callable[[Token], Any]] = None,
        on_prefill: Optional[Callable[[int, int], Any]] = None,
        rewind: bool = True,
    ) -> Generation:
        """New text after `prompt`, a text or tokens. Equal arguments give equal text, on any
        machine. docs/sampling.md has the formulas.

        json_schema: JSON schema of the text, a dict or JSON; not with a grammar. logit_bias: a dict
        of tokens. rules: a compiled grammar or schema (compile_rules()). lookup_text: a further
        source of draft tokens, a LookupText. on_token(token) and on_prefill(done, total) end the
        text by returning False.

        Options, from api/options, GenerateOptions but json_schema:

        max_tokens: Largest length of the text; 0 or more tokens.
        temperature: Divisor of the logits; 0 always takes the most likely token; 0 or more.
        top_k: Keep the k most likely tokens; 0 keeps all; 0 or more.
        top_p: Keep the fewest tokens with this total probability; above 0, up to 1.
        min_p: Keep tokens with at least this share of the best one's probability; 0 to 1.
        repetition_penalty: Logits of tokens in the window are divided by this if positive, else
            multiplied (Keskar et al., 2019); above 0.
        repetition_window: Window of the penalties, prompt included; 0 is all; 0 or more tokens.
        seed: Sampling seed; equal seeds give equal texts on every machine.
        frequency_penalty: Subtracted from a logit for each occurrence in the window (OpenAI); -1e6
            to 1e6.
        presence_penalty: Subtracted once from logits of tokens in the window (OpenAI); -1e6 to 1e6.
        no_repeat_ngram: An n-gram of this length never repeats; 0 disables it; 0 to 1048576 tokens.
        dry_multiplier: DRY penalty for a token that continues a repetition; 0 disables it; 0 to
            1e6.
        dry_base: Factor of the DRY penalty for each repeated token; 1 to 1e6.
        dry_allowed_length: Length of a repetition that has no DRY penalty; 0 or more tokens.
        dry_window: Length of the text in which DRY finds repetitions, prompt included; 0 is all; 0
            or more tokens.
        dry_breakers: A repetition ends at a token whose text contains one of these. The default is
            a line end, a colon, a quote and an asterisk.
        typical_p: Keep the share of tokens whose surprise is nearest to the entropy; above 0, up to
            1.
        top_n_sigma: Keep logits within this distance of the largest; 0 disables it; 0 to 1e6
            deviations.
        xtc_probability: How often XTC keeps only the least likely of the tokens above
            xtc_threshold; 0 to 1.
        xtc_threshold: Probability from which XTC counts a token; 0 to 1.
        dynamic_range: The entropy moves the temperature by up to this, down and up; 0 disables it;
            0 to 1e6.
        dynamic_exponent: Exponent of entropy / its maximum, for dynamic_range; above 0, up to 1000.
        mirostat: 1 and 2 keep the surprise of each token near mirostat_tau (Basu et al., 2021); 0
            disables it; 0 to 2.
        mirostat_tau: Surprise that Mirostat aims at; 0 to 1e6 bits.
        mirostat_eta: Learning rate of Mirostat; 0 to 1e6.
        logit_bias: Added to the logits of these tokens.
        banned_tokens: Tokens that are never drawn.
        banned_strings: Texts that never appear: a token that would complete one is removed.
        stop: Generation ends before one of these texts. Valid UTF-8, not empty.
        eos_ids: Tokens that end the text; empty means those of the model.
        ignore_eos: A token that ends a text does not end it.
        special_text: Chat marks become text too, for a ReplyParser.
        logprobs: Fills logprob of each token and of the generation.
        top_logprobs: Number of the most likely tokens that each Token lists; 0 or more tokens.
        logprobs_of_draw: Log-probabilities are those of the draw: after temperature, penalties and
            truncation, over the remaining tokens. A token that is chosen without a draw has
            probability 1.
        shift_context: When the context is full, drops a part of it and reads the rest again at its
            new position. The text continues as if the prompt had never had that part. Not for
            recurrent layers.
        keep_tokens: Length of the beginning that shift_context never drops; 0 or more tokens.
        shift_tokens: Tokens that shift_context drops at a time; 0 is half of the allowed ones; 0 or
            more tokens.
        grammar: Grammar of the text in GBNF, with the rule root. The text ends at the end of the
            grammar. Needs a tokenizer.
        lookup: Draft tokens come from earlier occurrences of the last tokens; the text does not
            change.
        guesses: Largest number of draft tokens per pass; 0 to 64 tokens.
        guess_chance: The draft model continues while the joint probability of its tokens in a pass
            is at least this; 0 always drafts `guesses` tokens; 0 to 1.
        """
        names = (*GENERATE_OPTIONS, *HANDLES)
        values = {name: value for name, value in locals().items() if name in names}
        callbacks = Callbacks()
        seen = None if on_token is None else lambda t: on_token(_token(t, logprobs))
        options = generate_options(
            values,
            on_token=callbacks.wrap(_ffi.loom_token_fn, seen),
            on_prefill=callbacks.wrap(_ffi.loom_progress_fn, on_prefill),
        )
        return self._run(prompt, options, callbacks, rewind)

    def _run(
        self, prompt: Prompt, options: Any, callbacks: Callbacks, rewind: bool
    ) -> Generation:
        out = ctypes.c_void_p()
        with self._lock:
            session = self._session.handle
            if rewind:
                check(lib.loom_model_session_rewind(session, 0))
            if isinstance(prompt, str):
                code = callbacks.run(
                    lib.loom_model_session_generate, session, encoded(prompt),
                    ctypes.byref(options), ctypes.byref(out),
                )  # fmt: skip
            else:
                code = callbacks.run(
                    lib.loom_model_session_generate_ids, session, c_ids(prompt), len(prompt),
                    ctypes.byref(options), ctypes.byref(out),
                )  # fmt: skip
            try:
                callbacks.check(code)
                return _generation(out)
            except KeyboardInterrupt:
                if out:
                    self.last = _generation(out)
                    print(_STOPPED, file=sys.stderr)
                raise
            finally:
                lib.loom_generation_free(out)

    @options_of(generate)
    def stream(self, prompt: Prompt, **options: "Unpack[Keywords]") -> Iterator[Token]:
        """The tokens of generate(), each as soon as it is there. Leaving the loop ends it."""
        ready: "queue.Queue[Any]" = queue.Queue(maxsize=16)
        left = threading.Event()
        user = options.get("on_token")

        def each(token: Token) -> bool:
            if user is not None and user(token) is False:
                return False
            while not left.is_set():
                try:
                    ready.put(token, timeout=0.05)
                    return True
                except queue.Full:
                    continue
            return False

        options["on_token"] = each

        def work() -> None:
            end: Any = None
            try:
                self.generate(prompt, **options)
            except BaseException as error:
                end = error
            while not left.is_set():
                try:
                    ready.put((end,), timeout=0.05)
                    return
                except queue.Full:
                    continue

        worker = threading.Thread(target=work, name="loom.stream", daemon=True)
        worker.start()
        try:
            while True:
                item = ready.get()
                if isinstance(item, tuple):
                    if item[0] is not None:
                        raise item[0]
                    return
                yield item
        finally:
            left.set()
            worker.join()

    @options_of(generate, but=["rewind"])
    def chat(
        self,
        turns: Union[str, Sequence[Turn]],
        *,
        date: Optional[str] = None,
        tools: Any = None,
        tool_choice: Any = "auto",
        documents: Any = None,
        variables: Any = None,
        continue_final_message: bool = False,
        **options: "Unpack[Keywords]",
    ) -> Generation:
        """The assistant's next turn. `turns` are those of render_chat(), or one text of the user.
        The options are those of generate(), and of render_chat(). Its `reply` is separated into
        text, reasoning and calls of tools; `reply.message` is the turn that continues `turns`.

        tool_choice: "auto", "none", "required" (the reply is a call), or the name of a function
        that is called."""
        seen: Sequence[Turn] = [("user", turns)] if isinstance(turns, str) else turns
        if tool_choice == "none":
            tools = None
        prompt = self.render_chat(
            seen, date=date, tools=tools, documents=documents, variables=variables,
            continue_final_message=continue_final_message,
        )  # fmt: skip
        if tools is not None:
            options.setdefault("special_text", True)
            rules = call_rules(tool_choice)
            held = self.call_grammar(prompt, tools, **rules)
            if held:
                options.setdefault("grammar", held)
        made = self.generate(self.tokenize(prompt, special_tokens=False), **options)
        made.reply = self.parse_reply(made, prompt=prompt, tools=tools)
        return made

    @property
    def tool_format(self) -> str:
        """How the model writes calls of tools; "": it knows none."""
        return text_from(lib.loom_model_tool_format, self.handle)

    def parse_reply(self, text: str, *, prompt: str = "", tools: Any = None) -> "Reply":
        """A parsed reply. prompt: what render_chat() gave, for the same tools."""
        words = encoded(None if tools is None else json_of(tools, "tools"))
        before = encoded(prompt)
        return read_reply(
            text_from(lib.loom_model_read_reply, self.handle, encoded(text), before, words)
        )

    @options_of(generate, but=["rewind", "on_token", "on_prefill"])
    def generate_batch(
        self, prompts: Sequence[Prompt], *, sequences: int = 4, **options: "Unpack[Keywords]"
    ) -> List[Generation]:
        """The result of generate() for each prompt, written together, so many at a time. The
        options
        are those of generate(), but for callbacks."""
        ids = [self._tokens(p) for p in prompts]
        values: Dict[str, Any] = {**options}
        how = generate_options(values)
        with Batch(self, sequences) as batch:
            return batch.write(ids, how)

    # ---- what was read ---------------------------------------------------------------------------

    def save_state(self, path: Path) -> None:
        """Saves the state of the last call as a file: keys, values, logits."""
        with self._lock:
            check(lib.loom_model_session_save_state(self._session.handle, encoded(path)))

    def load_state(self, path: Path) -> None:
        """The reverse; continue_() goes on from there with the very bits."""
        with self._lock:
            check(lib.loom_model_session_load_state(self._session.handle, encoded(path)))

    @options_of(generate, but=["rewind"])
    def continue_(self, text: Prompt = "", **options: "Unpack[Keywords]") -> Generation:
        """As generate(), but from where the last call, or load_state(), has read to."""
        return self.generate(text, rewind=False, **options)

    def logits(
        self, prompt: Prompt, *, progress: Optional[Callable[[int, int], Any]] = None
    ) -> Any:
        """Logits [vocab] after `prompt`: a copy. progress(done, total): tokens, after each piece of
        256; False ends it with CancelledError."""
        callbacks = Callbacks()
        ids = self._tokens(prompt)
        out, count = ctypes.POINTER(ctypes.c_float)(), ctypes.c_int64()
        with self._lock:
            session = self._session.handle
            check(lib.loom_model_session_rewind(session, 0))
            watch = callbacks.wrap(_ffi.loom_progress_fn, progress)
            callbacks.check(
                callbacks.run(
                    lib.loom_model_session_feed_watched, session, c_ids(ids), len(ids), watch, None
                )
            )
            check(lib.loom_model_session_logits(session, ctypes.byref(out), ctypes.byref(count)))
            values = out[: count.value]
        numpy = numpy_module()
        return values if numpy is None else numpy.array(values, numpy.float32)

    def _session_info(self) -> Any:
        return report(
            _ffi.loom_model_session_info, lib.loom_model_session_get_info, self._session.handle
        )

    @property
    def position(self) -> int:
        """Tokens that the last call, or load_state(), has read."""
        return int(self._session_info().position)

    @property
    def context(self) -> int:
        """Positions in total."""
        return int(self._session_info().context)

    def rewind(self, position: int = 0) -> None:
        """Drops what was read from `position` on; continue_() goes on from there."""
        with self._lock:
            check(lib.loom_model_session_rewind(self._session.handle, position))

    @property
    def activation_bytes(self) -> int:
        """Memory for one forward pass."""
        return int(self._session_info().activation_bytes)

    @property
    def cache_bytes(self) -> int:
        """Memory for keys, values and rotary tables."""
        return int(self._session_info().cache_bytes)

    @property
    def bytes(self) -> int:
        """Memory next to the weights: the sum of activation_bytes and cache_bytes."""
        return int(self._session_info().bytes)

    def __repr__(self) -> str:
        if self.closed:
            return "<loom.LLM, closed>"
        info = self.info
        rows = {name: info[name] for name in _SHOWN if info.get(name) not in (None, "", 0)}
        wide = max(map(len, rows))
        lines = [f"  {name:<{wide}}  {value}" for name, value in rows.items()]
        return "\n".join([self._line(), *lines])

    def _line(self) -> str:
        info = self.info
        return (
            f"<loom.LLM {info['architecture']}, {info['parameters']} parameters, {info['dtype']}, "
            f"context {info['context']}>"
        )

    def _repr_html_(self) -> str:
        if self.closed:
            return "<p>&lt;loom.LLM, closed&gt;</p>"
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
            for name, value in self.info.items()
        )
        return f"<p>{html.escape(self._line())}</p><table>{rows}</table>"
