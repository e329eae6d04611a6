"""Tokenizer, and the calls of a language model that need no session."""

import ctypes
import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Union

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
    name_of,
    number_of,
    sized,
    take_text,
    text_from,
)
from ._sampling import c_texts, generate_options
from .arrays import dtype_number, numpy_module, result
from .engine import Engine, engine_handle
from .network import Path
from .options import TextPoolingName

Prompt = Union[str, Sequence[int]]


def _pooling(name: Optional[str]) -> int:
    """The number of a pooling. None is "model" of earlier versions."""
    return number_of(_ffi.POOLING, (name or "model").replace("-", "_"), "pooling")


def c_ids(ids: Sequence[int]) -> Any:
    return (ctypes.c_int32 * len(ids))(*ids)


def taken_ids(function: Any, *arguments: Any) -> List[int]:
    ids, count = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_int64()
    check(function(*arguments, ctypes.byref(ids), ctypes.byref(count)))
    try:
        return ids[: count.value]
    finally:
        lib.loom_free(ids)


class Tokenizer(Handle):
    """The tokenizer of a model (.entity, GGUF, a Hugging Face folder) or a tokenizer.json, without
    the weights. Thread-safe."""

    _FREE = "loom_tokenizer_free"

    def __init__(
        self,
        path: Union[Path, bytes],
        *,
        name: Optional[str] = None,
        engine: Optional[Engine] = None,
    ) -> None:
        """path: or the bytes of such a file, which errors call `name`."""
        tokenizer = ctypes.c_void_p()
        if is_bytes(path):
            file = FileBytes(path, name)
            code = lib.loom_tokenizer_load_memory(
                engine_handle(engine), *file.arguments, ctypes.byref(tokenizer)
            )
        else:
            code = lib.loom_tokenizer_load(
                engine_handle(engine), encoded(path), ctypes.byref(tokenizer)
            )
        check(code)
        super().__init__(tokenizer.value or 0)

    def encode(
        self,
        text: str,
        *,
        # options: generated from api/options, EncodeOptions
        special_tokens: bool = True,
        parse_special_tokens: bool = True,
        # end of options
    ) -> List[int]:
        """Ids of a text.

        Options, from api/options, EncodeOptions:

        special_tokens: Adds the tokens around a text (such as BOS).
        parse_special_tokens: Text that spells a special token becomes that token.
        """
        options = sized(
            _ffi.loom_encode_options,
            no_special_tokens=not special_tokens,
            plain=not parse_special_tokens,
        )
        call = lib.loom_tokenizer_encode_with
        return taken_ids(call, self.handle, encoded(text), ctypes.byref(options))

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        return text_from(
            lib.loom_tokenizer_decode, self.handle, c_ids(ids), len(ids), int(skip_special)
        )

    @property
    def vocab_size(self) -> int:
        """The highest id and one more."""
        out = ctypes.c_int64()
        check(lib.loom_tokenizer_vocab_size(self.handle, ctypes.byref(out)))
        return out.value

    @property
    def special_tokens(self) -> Dict[str, int]:
        """Ids of tokens that are not text, by their names, ascending."""
        ids = taken_ids(lib.loom_tokenizer_special_tokens, self.handle)
        return {self.decode([token], skip_special=False): token for token in ids}

    def token_id(self, token: str) -> int:
        """The id of a token, spelled as in the vocabulary."""
        out = ctypes.c_int32()
        check(lib.loom_tokenizer_token_id(self.handle, encoded(token), ctypes.byref(out)))
        return out.value

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token adds to a text, which may be a part of a character; the name of a
        special token. OutOfRangeError: there is no such token."""
        out, size = ctypes.c_void_p(), ctypes.c_int64()
        check(
            lib.loom_tokenizer_token_bytes(
                self.handle, token, ctypes.byref(out), ctypes.byref(size)
            )
        )
        try:
            return ctypes.string_at(out.value or 0, size.value)
        finally:
            lib.loom_free(out)

    def __repr__(self) -> str:
        return "<loom.Tokenizer, closed>" if self.closed else f"<loom.Tokenizer {self.vocab_size}>"


class Ranked(NamedTuple):
    """A document of LLM.rerank()."""

    document: int  # its index
    score: float  # 0 to 1
    logit: float


class Perplexity(NamedTuple):
    """How well a model predicts a text: LLM.perplexity()."""

    perplexity: float  # exp of nats_per_token
    nats_per_token: float  # the mean negative log-likelihood
    predictions: int
    kl_divergence: float = 0.0  # from the reference, in nats
    top_agreement: float = 1.0  # with the reference, a share of the predictions


class BeamText(NamedTuple):
    """A text of LLM.beam_search()."""

    text: str
    token_ids: List[int]
    score: float  # the sum of log-probabilities / tokens^length_penalty
    stop: str  # "eos", "length" or "context"


class Rules(Handle):
    """A grammar, a JSON schema and banned texts, compiled by LLM.compile_rules().

    rules = llm.compile_rules(json_schema={"type": "boolean"})
    llm.generate("Is water wet? ", rules=rules)
    """

    _FREE = "loom_rules_free"


class LookupText(Handle):
    """Tokens that a model is likely to repeat: a source of draft tokens for generate().

    text = loom.LookupText(llm.tokenize("Once upon a time there was a little girl."))
    llm.generate("Once upon", lookup=True, lookup_text=text)
    """

    _FREE = "loom_lookup_text_free"

    def __init__(self, ids: Sequence[int]) -> None:
        super().__init__(handle_from(lib.loom_lookup_text_create, c_ids(ids), len(ids)))

    def next(self, history: Sequence[int], share: float = 0.5) -> Optional[int]:
        """The token that followed the longest end of `history` in the text, in at least `share` of
        the cases. None: none did."""
        out = ctypes.c_int32()
        ids = c_ids(history)
        check(
            lib.loom_lookup_text_next(
                self.handle, ids, len(history), float(share), ctypes.byref(out)
            )
        )
        return None if out.value < 0 else out.value


def check_rules(*, grammar: Optional[str] = None, json_schema: Any = None) -> None:
    """Checks a grammar (GBNF) or a JSON schema without a model. The error says where the fault is:
    InvalidArgumentError, UnsupportedError, BadFileError (no JSON)."""
    options = generate_options({"grammar": grammar, "json_schema": json_schema})
    check(lib.loom_check_rules(ctypes.byref(options)))


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """The cosine of the angle between two vectors of LLM.embed(); 0 if one of them is zero."""
    if len(a) != len(b):
        raise ValueError(f"the vectors have {len(a)} and {len(b)} numbers, must be as many")
    out = ctypes.c_float()
    vectors = [(ctypes.c_float * len(v))(*[float(x) for x in v]) for v in (a, b)]
    check(lib.loom_cosine(*vectors, len(a), ctypes.byref(out)))
    return out.value


class ModelCalls(Handle):
    """The parts of LLM that need no session."""

    def tokenize(self, text: str, *, special_tokens: bool = True) -> List[int]:
        """Ids, with the tokens that the tokenizer puts around a text."""
        return taken_ids(lib.loom_model_tokenize, self.handle, encoded(text), int(special_tokens))

    def _tokens(self, text: Prompt) -> List[int]:
        return self.tokenize(text) if isinstance(text, str) else list(text)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, which keeps the model alive. NotFoundError: the model has none."""
        made = Tokenizer.__new__(Tokenizer)
        Handle.__init__(made, handle_from(lib.loom_model_tokenizer, self.handle))
        return made

    @property
    def chat_template(self) -> str:
        """The text of the chat template; "": there is none."""
        return text_from(lib.loom_model_chat_template, self.handle)

    def fingerprint(self, cache_type: str = "float32") -> str:
        """16 hexadecimal digits for all that affects the bits of a text besides the request: the
        weights, their type, that of the KV cache, and the numerics. Reads all weights."""
        number = dtype_number(cache_type)
        return text_from(lib.loom_model_fingerprint, self.handle, number)

    def suggested_sampling(self) -> Optional[Dict[str, Any]]:
        """Options for generate() from the model's generation_config.json; None without it."""
        found: Optional[Dict[str, Any]] = json.loads(
            text_from(lib.loom_model_suggested_sampling, self.handle)
        )
        return found

    # ---- constraints -----------------------------------------------------------------------------

    def compile_rules(
        self,
        *,
        grammar: Optional[str] = None,
        json_schema: Any = None,
        banned_strings: Sequence[str] = (),
    ) -> Optional[Rules]:
        """Compiles constraints once for generate(rules=...), which then starts at once. None: there
        is no constraint."""
        options = generate_options(
            {"grammar": grammar, "json_schema": json_schema, "banned_strings": banned_strings}
        )
        handle = handle_from(lib.loom_model_compile_rules, self.handle, ctypes.byref(options))
        return Rules(handle) if handle else None

    def call_grammar(
        self,
        prompt: str,
        tools: Any,
        *,
        required: bool = False,
        allowed: Sequence[str] = (),
        parallel: bool = True,
        otherwise: Any = None,
    ) -> str:
        """A grammar for generate(grammar=..., special_text=True) that constrains calls in a reply
        to `prompt`, of render_chat(), to the schemas of `tools`. "": nothing is constrained.

        required: the reply is a call. allowed: names of functions; none: all. parallel: several
        calls. otherwise: JSON schema of a reply without calls.
        """
        names = c_texts(list(allowed))
        rules = sized(
            _ffi.loom_call_rules,
            required=required,
            single=not parallel,
            allowed=ctypes.cast(names, ctypes.POINTER(ctypes.c_char_p)),
            allowed_count=len(names),
            otherwise=encoded(None if otherwise is None else json.dumps(otherwise)),
        )
        words = encoded(json.dumps(tools))
        return text_from(
            lib.loom_model_call_grammar, self.handle, encoded(prompt), words, ctypes.byref(rules)
        )

    # ---- whole texts -----------------------------------------------------------------------------

    def perplexity(
        self,
        text: Prompt,
        *,
        # options: generated from api/options, PerplexityOptions
        window: int = 512,
        limit: int = 0,
        # end of options
        progress: Optional[Callable[[int, int], Any]] = None,
        reference: Optional["ModelCalls"] = None,
    ) -> Perplexity:
        """How well the model predicts a text or tokens. progress(done, total): False ends it with
        CancelledError. reference: a model with the same vocabulary, to compare with.

        Options, from api/options, PerplexityOptions:

        window: Length of a window; each is read without earlier context; 1 to 16777216 predictions.
        limit: Largest number, in whole windows; 0 is all; 0 or more predictions.
        """
        callbacks, ids = Callbacks(), self._tokens(text)
        options = sized(
            _ffi.loom_perplexity_options,
            window=window,
            limit=limit,
            progress=callbacks.wrap(_ffi.loom_progress_fn, progress),
            reference=None if reference is None else reference.handle,
        )
        out = sized(_ffi.loom_perplexity)
        callbacks.check(
            callbacks.run(
                lib.loom_model_perplexity, self.handle, c_ids(ids), len(ids),
                ctypes.byref(options), ctypes.byref(out),
            )
        )  # fmt: skip
        return Perplexity(
            out.perplexity, out.nats_per_token, out.predictions, out.kl_divergence,
            out.top_agreement,
        )  # fmt: skip

    def beam_search(
        self,
        prompt: Prompt,
        *,
        # options: generated from api/options, BeamOptions
        num_beams: int = 4,
        max_tokens: int = 256,
        length_penalty: float = 1.0,
        early_stopping: bool = False,
        eos_ids: Sequence[int] = (),
        ignore_eos: bool = False,
        # end of options
        context: int = 0,
        progress: Optional[Callable[[int, int], Any]] = None,
    ) -> List[BeamText]:
        """The likeliest continuations as a whole, best first. context: positions of the KV cache; 0
        is that of the model, at most 2048. progress(tokens, max_tokens): False ends it with
        CancelledError.

        Options, from api/options, BeamOptions:

        num_beams: Number of beams; 1 to 64.
        max_tokens: Largest length of a text; 0 or more tokens.
        length_penalty: The score of a text of n tokens is the sum of its log-probabilities /
            n^length_penalty. Above 0 favours long texts, below 0 short ones.
        early_stopping: Ends as soon as num_beams texts have ended. Else it ends when no running
            text has a better score, at its length so far, than the worst of those.
        eos_ids: Tokens that end a text; empty means those of the model.
        ignore_eos: A token that ends a text does not end it.
        """
        callbacks, ids = Callbacks(), self._tokens(prompt)
        ends = c_ids(eos_ids)
        options = sized(
            _ffi.loom_beam_options,
            num_beams=num_beams,
            max_tokens=max_tokens,
            has_length_penalty=1,
            length_penalty=length_penalty,
            early_stopping=early_stopping,
            ignore_eos=ignore_eos,
            eos_ids=ctypes.cast(ends, ctypes.POINTER(ctypes.c_int32)),
            eos_count=len(ends),
            context=context,
            progress=callbacks.wrap(_ffi.loom_progress_fn, progress),
        )
        out = ctypes.c_void_p()
        callbacks.check(
            callbacks.run(
                lib.loom_beam_search, self.handle, c_ids(ids), len(ids), ctypes.byref(options),
                ctypes.byref(out),
            )
        )  # fmt: skip
        rows = json.loads(take_text(out))
        for row in rows:
            row["stop"] = name_of(_ffi.STOP, row["stop"])
        return [BeamText(**row) for row in rows]

    # ---- vectors ---------------------------------------------------------------------------------

    def embed(
        self,
        texts: Union[str, Sequence[str]],
        *,
        # options: generated from api/options, EmbedOptions
        pooling: Optional[TextPoolingName] = None,
        normalize: Optional[bool] = None,
        prompt_name: str = "",
        prompt: Optional[str] = None,
        max_tokens: int = 0,
        truncate: bool = True,
        dimensions: int = 0,
        # end of options
        progress: Optional[Callable[[int, int], Any]] = None,
    ) -> Any:
        """Vectors float32 [texts, dimensions], of one text [dimensions]; with pooling "none" of one
        text [tokens, dimensions].

        Options, from api/options, EmbedOptions:

        pooling: How a text becomes a vector. Unset: the setting of the model's sentence-
            transformers files, or else mean.
        normalize: Scales vectors to length 1. Unset: the setting of those files, or else true.
        prompt_name: Name of a prompt of the model (query, passage) to prepend to each text; empty
            means its default prompt, if it has one.
        prompt: A text to prepend to each text. Unset: the prompt of the model.
        max_tokens: Largest length of a text, special tokens included; 0 is the limit of the model;
            0 to 16777216 tokens.
        truncate: Truncates longer texts at their end; else they are an error.
        dimensions: Length of the beginning of each vector to keep, normalized again with normalize;
            0 is all. For models that were trained for it (Matryoshka representations); 0 to
            16777216 values.
        """
        given = [texts] if isinstance(texts, str) else list(texts)
        made = self._embed(
            lib.loom_model_embed, (c_texts(given), len(given)), progress,
            pooling=_pooling(pooling),
            has_normalize=normalize is not None,
            normalize=bool(normalize),
            no_truncate=not truncate,
            prompt_name=encoded(prompt_name),
            prompt=encoded(prompt),
            max_tokens=max_tokens,
            dimensions=dimensions,
        )  # fmt: skip
        single = isinstance(texts, str) and pooling != "none"
        return made[0] if single and numpy_module() is not None else made

    def embed_tokens(
        self,
        texts: Sequence[Sequence[int]],
        *,
        # options: generated from api/options, EmbedOptions only pooling, normalize, dimensions
        pooling: Optional[TextPoolingName] = None,
        normalize: Optional[bool] = None,
        dimensions: int = 0,
        # end of options
        progress: Optional[Callable[[int, int], Any]] = None,
    ) -> Any:
        """embed() of tokens, unchanged: no prompt and no special tokens are added.

        Options, from api/options, EmbedOptions only pooling, normalize, dimensions:

        pooling: How a text becomes a vector. Unset: the setting of the model's sentence-
            transformers files, or else mean.
        normalize: Scales vectors to length 1. Unset: the setting of those files, or else true.
        dimensions: Length of the beginning of each vector to keep, normalized again with normalize;
            0 is all. For models that were trained for it (Matryoshka representations); 0 to
            16777216 values.
        """
        ids = c_ids([token for text in texts for token in text])
        lengths = (ctypes.c_int64 * len(texts))(*map(len, texts))
        return self._embed(
            lib.loom_model_embed_tokens, (ids, lengths, len(texts)), progress,
            pooling=_pooling(pooling),
            has_normalize=normalize is not None,
            normalize=bool(normalize),
            dimensions=dimensions,
        )  # fmt: skip

    def _embed(
        self,
        function: Any,
        texts: Any,
        progress: Optional[Callable[[int, int], Any]],
        **fields: Any,
    ) -> Any:
        callbacks = Callbacks()
        watch = callbacks.wrap(_ffi.loom_progress_fn, progress)
        options = sized(_ffi.loom_embed_options, progress=watch, **fields)
        out = ctypes.c_void_p()
        last = (ctypes.byref(options), ctypes.byref(out))
        callbacks.check(callbacks.run(function, self.handle, *texts, *last))
        return result(out.value or 0)

    def rerank(
        self,
        query: str,
        documents: Sequence[str],
        *,
        # options: generated from api/options, RerankOptions
        max_tokens: int = 0,
        truncate: bool = True,
        # end of options
        progress: Optional[Callable[[int, int], Any]] = None,
    ) -> List[Ranked]:
        """The documents by how well they answer the query, best first. progress(done, total)
        stops by returning False.

        Options, from api/options, RerankOptions:

        max_tokens: Largest length of query and document together; 0 is the limit of the model; 0 to
            16777216 tokens.
        truncate: Cuts the end of the longer text; else a longer pair is an error.
        """
        callbacks = Callbacks()
        options = sized(
            _ffi.loom_rerank_options,
            max_tokens=max_tokens,
            no_truncate=not truncate,
            progress=callbacks.wrap(_ffi.loom_progress_fn, progress),
        )
        out = (_ffi.loom_ranked * max(1, len(documents)))()
        given = c_texts(list(documents))
        callbacks.check(
            callbacks.run(
                lib.loom_model_rerank, self.handle, encoded(query), given, len(documents),
                ctypes.byref(options), out,
            )
        )  # fmt: skip
        return [Ranked(r.index, r.score, r.logit) for r in out[: len(documents)]]
