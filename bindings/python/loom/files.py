"""Models between files: conversion, quantization, comparison, merging.

loom.convert("net.entity", "small.entity", dtype="q4_0", measure=True).tensors[0].cosine
loom.diff("net.entity", "small.entity")
loom.merge(["a.entity", "b.entity"], "both.entity", weights=[0.7, 0.3])
"""

import ctypes
import json
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _ffi
from ._library import (
    Callbacks,
    Handle,
    check,
    encoded,
    handle_from,
    lib,
    sized,
    take_text,
    text_from,
)
from .arrays import dtype_number, result
from .engine import Engine, engine_handle
from .network import Path
from .options import CalibrationMethodName, MergeMethodName

Work = Callable[[str, int, int], Any]


class PackedTensor(NamedTuple):
    """The cost of packing one parameter."""

    name: str
    shape: Tuple[int, ...]
    from_dtype: str
    to_dtype: str
    bytes_from: int
    bytes_to: int
    rms: float  # of the values
    error: float  # root of the mean square of what changed
    max_error: float
    cosine: float  # of the values before and after


class Converted(NamedTuple):
    format: str  # of the input
    bytes: int  # of the output
    tensors: List[PackedTensor]  # with measure


def _packed(values: Dict[str, Any]) -> PackedTensor:
    values["from_dtype"], values["to_dtype"] = values.pop("from"), values.pop("to")
    return PackedTensor(**{**values, "shape": tuple(values["shape"])})


class _Told:
    """Functions of the caller as fields of C options."""

    def __init__(
        self, progress: Optional[Work], note: Optional[Callable[[str], Any]]
    ) -> None:
        self.callbacks = Callbacks()

        def work(name: bytes, done: int, total: int) -> Any:
            return None if progress is None else progress(name.decode(), done, total)

        def noted(text: bytes) -> Any:
            if note is not None:
                note(text.decode())

        seen = None if progress is None else work
        self.fields = {
            "progress": self.callbacks.wrap(_ffi.loom_work_fn, seen),
            "note": self.callbacks.wrap(
                _ffi.loom_note_fn, None if note is None else noted, listens=False
            ),
        }

    def run(self, function: Any, *arguments: Any) -> Any:
        text = ctypes.c_void_p()
        self.callbacks.check(self.callbacks.run(function, *arguments, ctypes.byref(text)))
        return json.loads(take_text(text))


def _texts(texts: Sequence[Any]) -> Any:
    return (ctypes.c_char_p * len(texts))(*map(encoded, texts))


def convert(
    source: Path,
    output: Path,
    *,
    dtype: Optional[str] = None,
    rules: Optional[Mapping[str, str]] = None,
    # options: generated from api/options, ConvertOptions
    per_tensor: bool = False,
    with_weights: bool = False,
    measure: bool = False,
    calibration: Optional[Path] = None,
    calibration_windows: int = 16,
    for_training: Optional[bool] = None,
    trainable: Sequence[str] = (),
    frozen: Sequence[str] = (),
    open_extent: int = 0,
    allow_nonfinite: bool = False,
    tokenizer: Optional[Path] = None,
    context: int = 2048,
    shape: str = "",
    seed: int = 1,
    recipe: str = "",
    calibration_method: CalibrationMethodName = "gptq",
    damping: float = 0.01,
    importance: Optional[Path] = None,
    save_importance: Optional[Path] = None,
    target_bits: float = 0.0,
    # end of options
    progress: Optional[Work] = None,
    note: Optional[Callable[[str], Any]] = None,
    engine: Optional[Engine] = None,
) -> Converted:
    """A model in another format or number type, by the ending of `output`.

    dtype: of the matrices. rules: number types by patterns of parameters; the first that fits
    decides, before dtype. progress(work, done, total) stops by returning False. note(text): what
    the format has no place for.

    Options, from api/options, ConvertOptions:

    per_tensor: One scale per matrix instead of one per row.
    with_weights: .json: writes the weights too, as base64, not only the description.
    measure: .entity: fills Converted::tensors.
    calibration: A text for a language model; the activations of its tokens weight the errors of
        quantized matrices.
    calibration_windows: Parts of 128 tokens of the calibration text; 1 to 1048576 windows.
    for_training: False folds batch norms and constant functions of weights of an ONNX or TFLite
        file into the weights of layers. That predicts faster, but trains other parameters. True
        keeps them, and does not round values of a quantized TFLite file to its steps. Unset: true
        for ONNX, false for TFLite.
    trainable: ONNX: patterns of initializers that train, besides those that docs/onnx.md names.
    frozen: ONNX: patterns of initializers that do not train; they take precedence.
    open_extent: ONNX, TFLite: extent of axes that the file leaves open, besides the batch; 0 makes
        them an error; 0 to 16777216.
    allow_nonfinite: Accepts weights that are NaN or infinite, or that overflow their type.
    tokenizer: Makes a language model of a network with the cells of one, such as a decoder of the
        original: a folder with tokenizer.json, or that file.
    context: Length that such a model supports; 1 to 16777216 positions.
    shape: A named shape (smollm2-135m) with random weights in place of the input.
    seed: Seed of those weights.
    recipe: Mixture of number types by matrix, in place of dtype: q2_k, q2_k_s, q3_k_s, q3_k_m,
        q3_k_l, q4_k_s, q4_k_m, q5_k_s, q5_k_m, q6_k, q4_0, q4_1, q5_0, q5_1 or q8_0, as llama.cpp's
        quantize.
    calibration_method: How the calibration text changes the codes.
    damping: gptq: share of the mean second moment of inputs that is added to each; above 0, up to
        1.
    importance: An importance matrix of llama.cpp (.dat or .gguf) that weights errors in place of a
        text.
    save_importance: Writes the importance matrix of the calibration text: GGUF if it ends in .gguf,
        else the older .dat.
    target_bits: Chooses the types of matrices so that the weights have this size and the loss is
        least, measured on the calibration text; 0 disables it; 0 to 16 bits per weight.
    """
    told = _Told(progress, note)
    patterns = _texts([f"{pattern}={kind}" for pattern, kind in (rules or {}).items()])
    options = sized(
        _ffi.loom_convert_options,
        has_dtype=dtype is not None,
        dtype=0 if dtype is None else dtype_number(dtype),
        rules=patterns,
        rules_count=len(patterns),
        per_tensor=per_tensor,
        with_weights=with_weights,
        measure=measure,
        calibration=encoded(calibration),
        calibration_windows=calibration_windows,
        allow_nonfinite=allow_nonfinite,
        tokenizer=encoded(tokenizer),
        context=context,
        has_for_training=for_training is not None,
        for_training=bool(for_training),
        trainable=_texts(trainable),
        trainable_count=len(trainable),
        frozen=_texts(frozen),
        frozen_count=len(frozen),
        open_extent=open_extent,
        shape=encoded(shape),
        has_seed=1,
        seed=seed,
        recipe=encoded(recipe),
        calibration_method=encoded(calibration_method),
        damping=damping,
        importance=encoded(importance),
        save_importance=encoded(save_importance),
        target_bits=target_bits,
        **told.fields,
    )
    found = told.run(
        lib.loom_convert,
        engine_handle(engine),
        encoded(source),
        encoded(output),
        ctypes.byref(options),
    )
    return Converted(found["format"], found["bytes"], [_packed(t) for t in found["tensors"]])


def quantize(
    source: Path,
    output: Path,
    dtype: Optional[str] = None,
    *,
    rules: Optional[Mapping[str, str]] = None,
    # options: generated from api/options, ConvertOptions but measure
    per_tensor: bool = False,
    with_weights: bool = False,
    calibration: Optional[Path] = None,
    calibration_windows: int = 16,
    for_training: Optional[bool] = None,
    trainable: Sequence[str] = (),
    frozen: Sequence[str] = (),
    open_extent: int = 0,
    allow_nonfinite: bool = False,
    tokenizer: Optional[Path] = None,
    context: int = 2048,
    shape: str = "",
    seed: int = 1,
    recipe: str = "",
    calibration_method: CalibrationMethodName = "gptq",
    damping: float = 0.01,
    importance: Optional[Path] = None,
    save_importance: Optional[Path] = None,
    target_bits: float = 0.0,
    # end of options
    progress: Optional[Work] = None,
    note: Optional[Callable[[str], Any]] = None,
    engine: Optional[Engine] = None,
) -> Converted:
    """convert() to a number type, with the error of each packed parameter.

    Options, from api/options, ConvertOptions but measure:

    per_tensor: One scale per matrix instead of one per row.
    with_weights: .json: writes the weights too, as base64, not only the description.
    calibration: A text for a language model; the activations of its tokens weight the errors of
        quantized matrices.
    calibration_windows: Parts of 128 tokens of the calibration text; 1 to 1048576 windows.
    for_training: False folds batch norms and constant functions of weights of an ONNX or TFLite
        file into the weights of layers. That predicts faster, but trains other parameters. True
        keeps them, and does not round values of a quantized TFLite file to its steps. Unset: true
        for ONNX, false for TFLite.
    trainable: ONNX: patterns of initializers that train, besides those that docs/onnx.md names.
    frozen: ONNX: patterns of initializers that do not train; they take precedence.
    open_extent: ONNX, TFLite: extent of axes that the file leaves open, besides the batch; 0 makes
        them an error; 0 to 16777216.
    allow_nonfinite: Accepts weights that are NaN or infinite, or that overflow their type.
    tokenizer: Makes a language model of a network with the cells of one, such as a decoder of the
        original: a folder with tokenizer.json, or that file.
    context: Length that such a model supports; 1 to 16777216 positions.
    shape: A named shape (smollm2-135m) with random weights in place of the input.
    seed: Seed of those weights.
    recipe: Mixture of number types by matrix, in place of dtype: q2_k, q2_k_s, q3_k_s, q3_k_m,
        q3_k_l, q4_k_s, q4_k_m, q5_k_s, q5_k_m, q6_k, q4_0, q4_1, q5_0, q5_1 or q8_0, as llama.cpp's
        quantize.
    calibration_method: How the calibration text changes the codes.
    damping: gptq: share of the mean second moment of inputs that is added to each; above 0, up to
        1.
    importance: An importance matrix of llama.cpp (.dat or .gguf) that weights errors in place of a
        text.
    save_importance: Writes the importance matrix of the calibration text: GGUF if it ends in .gguf,
        else the older .dat.
    target_bits: Chooses the types of matrices so that the weights have this size and the loss is
        least, measured on the calibration text; 0 disables it; 0 to 16 bits per weight.
    """
    return convert(
        source,
        output,
        dtype=dtype,
        rules=rules,
        per_tensor=per_tensor,
        with_weights=with_weights,
        measure=True,
        calibration=calibration,
        calibration_windows=calibration_windows,
        allow_nonfinite=allow_nonfinite,
        tokenizer=tokenizer,
        for_training=for_training,
        trainable=trainable,
        frozen=frozen,
        open_extent=open_extent,
        context=context,
        shape=shape,
        seed=seed,
        recipe=recipe,
        calibration_method=calibration_method,
        damping=damping,
        importance=importance,
        save_importance=save_importance,
        target_bits=target_bits,
        progress=progress,
        note=note,
        engine=engine,
    )


@dataclass(frozen=True)
class TensorDifference:
    """Two tensors of one name. dtype_a "text": the settings of a layer, or names of classes."""

    name: str
    only_a: bool
    only_b: bool
    equal: bool
    dtype_a: str
    dtype_b: str
    shape_a: str
    shape_b: str
    count: int
    different: int  # values whose bits differ
    max_ulp: int  # in float32 steps
    max_abs: float
    relative: float  # root mean square of the difference, by that of the first
    cosine: float


def diff(
    a: Path, b: Path, *, by_parameters: bool = False, engine: Optional[Engine] = None
) -> List[TensorDifference]:
    """The tensors of two files side by side. by_parameters: by their paths in the network."""
    on = engine_handle(engine)
    found = json.loads(text_from(lib.loom_diff, on, encoded(a), encoded(b), by_parameters))
    flags = ("only_a", "only_b", "equal")
    return [TensorDifference(**{**d, **{f: bool(d[f]) for f in flags}}) for d in found]


def verify_hashes(path: Path, *, engine: Optional[Engine] = None) -> int:
    """Compares every blob of an .entity file with its hash; how many there are."""
    out = ctypes.c_int64()
    check(lib.loom_verify_hashes(engine_handle(engine), encoded(path), ctypes.byref(out)))
    return out.value


class ModelFile(Handle):
    """The contents of a file with a model, without running it: weights stay where they are."""

    _FREE = "loom_model_file_free"

    def __init__(self, path: Path, *, engine: Optional[Engine] = None) -> None:
        on = engine_handle(engine)
        super().__init__(handle_from(lib.loom_model_file_open, on, encoded(path)))
        self._said: Dict[str, Any] = json.loads(text_from(lib.loom_model_file_json, self.handle))

    @property
    def format(self) -> str:
        """ "entity", "Hugging Face folder", ..."""
        return str(self._said["format"])

    @property
    def grid(self) -> str:
        """Its extents: "1 x 1 x 2 x 1"."""
        return str(self._said["grid"])

    @property
    def parameters(self) -> int:
        return int(self._said["parameters"])

    @property
    def notes(self) -> List[str]:
        """Properties that were inferred on opening."""
        return list(self._said["notes"])

    @property
    def layers(self) -> List[Dict[str, Any]]:
        """depth, at, type, settings, in, out, notes and parameters of each, before those below."""
        return list(self._said["layers"])

    @property
    def tensors(self) -> List[Dict[str, Any]]:
        """name, dtype, shape and bytes of each."""
        return list(self._said["tensors"])

    @property
    def decoder(self) -> Optional[Dict[str, Any]]:
        """Sizes of a language model; None for a network."""
        found: Optional[Dict[str, Any]] = self._said["decoder"]
        return found

    @property
    def training(self) -> Optional[Dict[str, Any]]:
        """The record of training: loss, classes, split, columns; None without one."""
        found: Optional[Dict[str, Any]] = self._said["training"]
        return found

    def _place(self, tensor: "Union[int, str]") -> int:
        if isinstance(tensor, int):
            return tensor
        names = [t["name"] for t in self.tensors]
        if tensor not in names:
            raise KeyError(f"there is no tensor '{tensor}'")
        return names.index(tensor)

    def values(self, tensor: "Union[int, str]") -> Any:
        """Values of a tensor, by its name or place, as float32."""
        call = lib.loom_model_file_values
        return result(handle_from(call, self.handle, self._place(tensor)))

    def hash(self, tensor: "Union[int, str]") -> str:
        """XXH3-128 of its stored bytes."""
        return text_from(lib.loom_model_file_hash, self.handle, self._place(tensor))


class Merged(NamedTuple):
    method: str
    models: int  # besides the base
    parameters: int  # tensors
    weights: int  # numbers in them
    bytes: int


def _numbers(values: Optional[Sequence[float]], count: int, what: str) -> Any:
    if values is None:
        return None
    if len(values) != count:
        raise ValueError(f"{len(values)} {what} for {count} models; give one each")
    return (ctypes.c_double * count)(*map(float, values))


def merge(
    models: Sequence[Path],
    output: Path,
    *,
    weights: Optional[Sequence[float]] = None,
    densities: Optional[Sequence[float]] = None,
    lambda_: float = 1.0,
    # options: generated from api/options, MergeOptions but lambda
    method: MergeMethodName = "linear",
    base: Optional[Path] = None,
    normalize: Optional[bool] = None,
    t: float = 0.5,
    seed: int = 1,
    # end of options
    dtype: Optional[str] = None,
    progress: Optional[Work] = None,
    note: Optional[Callable[[str], Any]] = None,
    engine: Optional[Engine] = None,
) -> Merged:
    """Files of one network become a file, by the methods of mergekit.

    weights: of the models. densities: share of values that ties and dare keep. lambda_: factor of
    the sum of task vectors.

    Options, from api/options, MergeOptions but lambda:

    method: How weights become one.
    base: Base model of task vectors; linear and slerp take none.
    normalize: Divides by the sum of the weights, unless that is below 1e-8. Unset: true for linear
        and ties.
    t: slerp: position on the arc: 0 is the first model, 1 the second; 0 to 1.
    seed: Seed of the values that dare drops; of the program also those that uniform takes.
    """
    told, count = _Told(progress, note), len(models)
    options = sized(
        _ffi.loom_merge_options,
        method=encoded(method),
        base=encoded(base),
        weights=_numbers(weights, count, "weights"),
        densities=_numbers(densities, count, "densities"),
        has_normalize=normalize is not None,
        normalize=bool(normalize),
        has_lambda=1,
        has_t=1,
        t=t,
        has_seed=1,
        seed=seed,
        has_dtype=dtype is not None,
        dtype=0 if dtype is None else dtype_number(dtype),
        **{"lambda": lambda_},
        **told.fields,
    )
    on = engine_handle(engine)
    call = lib.loom_merge
    found = told.run(call, on, _texts(models), count, encoded(output), ctypes.byref(options))
    return Merged(**found)
