"""Training: data sets, optimizers, the trainer, and what it tells.

Equal networks, data, options and seeds give equal bits, on any machine and with any number of
threads.
"""

import ctypes
import json
import math
import os
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _ffi, _media
from ._library import (
    Callbacks, FileBytes, Handle, check, encoded, handle_from, is_bytes, lib, number_of, report,
    sized, take_text, text_from,
)  # fmt: skip
from .arrays import Array, as_tensor, first_and_further, numpy_module, result
from ._labels import named
from ._tables import AS_WRITTEN, csv_bytes, reading_fields, table_for, with_target
from .engine import Engine, engine_handle
from .history import Epoch, History
from .network import Network, Path
from ._options import Options
from .telemetry import LayerPass, LayerStats, LinkStats, Telemetry, observers
from .options import (
    FIT_OPTIONS, TRAINER_OPTIONS, Augment, ClipName, LossName, NormalizeName, Optimizer,
    OptimizerKindName, RuleName, Schedule, ScheduleKindName,
)  # fmt: skip


@dataclass(frozen=True)
class ClassScore:
    """How well one class is separated from the others."""

    samples: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class Evaluation:
    """How well a network does. Scores that do not apply are None or empty.

    metrics: those of the option `metrics`; NaN where the samples do not determine one.
    """

    loss: float
    samples: int
    accuracy: Optional[float] = None
    mean_absolute_error: Optional[float] = None
    r2: Optional[float] = None
    confusion: Any = field(default=None, repr=False, compare=False)  # [class][called so]
    metrics: Dict[str, float] = field(default_factory=dict)
    classes: List[ClassScore] = field(default_factory=list, repr=False)


def _epoch(e: Any) -> Epoch:
    return Epoch(
        e.number,
        e.train_loss,
        e.validation_loss if e.has_validation else None,
        e.validation_accuracy if e.has_validation_accuracy else None,
        e.rate,
        e.gradient_norm,
        e.dropped,
        bool(e.best),
        e.samples_per_second,
        _numbers(json.loads(e.validation_metrics or b"{}")),
    )


def _numbers(values: Dict[str, Any]) -> Dict[str, Any]:
    """JSON has null for NaN."""
    return {name: math.nan if value is None else value for name, value in values.items()}


def _evaluation(found: Dict[str, Any]) -> Evaluation:
    numpy = numpy_module()
    confusion = found.pop("confusion") or None
    if confusion is not None and numpy is not None:
        confusion = numpy.array(confusion, numpy.int64)
    classes = [ClassScore(**_numbers(score)) for score in found.pop("classes")]
    metrics: Dict[str, float] = _numbers(found.pop("metrics"))
    return Evaluation(**_numbers(found), confusion=confusion, metrics=metrics, classes=classes)


def _with_classes(handle: int, names: Sequence[str]) -> int:
    """The same samples with names of their classes; takes the handle."""
    texts = (ctypes.c_char_p * len(names))(*[encoded(name) for name in names])
    before = Dataset._of(handle)
    return handle_from(lib.loom_dataset_with_classes, before.handle, texts, len(names))


def _read_only(handle: int) -> Any:
    values = result(handle)
    if numpy_module() is not None:
        values.flags.writeable = False
    return values


class Dataset(Handle):
    """Samples in memory, which never change.

    x: [n, sample]; integers of 32 and 64 bits are ids for an Embedding, other types are numbers. y:
    class labels as integers, or targets as floats, or None. Values are copied. lengths: how many
    positions of each sample [positions, ..] are real; the rest is padding. Networks
    of several inputs take a dict: the first input first, the others by their names in
    `Network.inputs`.
    """

    _FREE = "loom_dataset_free"
    _files: Any = None  # a folder that the library may read again

    def __init__(
        self, x: Any, y: Any = None, *, lengths: Any = None, classes: Sequence[str] = ()
    ) -> None:
        x, further = first_and_further(x)
        inputs = as_tensor(x)
        y, found = named(y)
        names = list(classes) or found or []
        targets = None if y is None else as_tensor(y)
        arrays = [inputs.pointer, targets and targets.pointer]
        make = lib.loom_dataset_from_arrays
        if lengths is not None:
            real = as_tensor(lengths)
            arrays.append(real.pointer)
            make = lib.loom_dataset_from_sequences
        handle = handle_from(make, *arrays)
        for name, values in further:
            before, more = Dataset._of(handle), as_tensor(values).pointer
            handle = handle_from(lib.loom_dataset_with_input, before.handle, encoded(name), more)
        super().__init__(_with_classes(handle, names) if names else handle)

    @classmethod
    def _of(cls, handle: int) -> "Dataset":
        made = cls.__new__(cls)
        Handle.__init__(made, handle)
        return made

    @classmethod
    def from_file(
        cls,
        path: Union[Path, bytes],
        network: Network,
        *,
        name: Optional[str] = None,
        labels: Optional[Path] = None,
        x: str = "x",
        y: str = "y",
        targets: int = 1,
        classes: bool = True,
        inputs_only: bool = False,
        header: str = "automatic",
        sample_weights: str = "",
        lengths: str = "",
        ignore_label: Optional[int] = None,
        separator: str = "",
        decimal: str = "",
        thousands: str = "",
        encoding: str = "",
        table: Optional[Mapping[str, Any]] = None,
        progress: Optional[Callable[[int, int], Any]] = None,
    ) -> "Dataset":
        """.csv, .npz, .npy, .safetensors, .idx, also .gz, read as `network` takes its inputs; an
        image or a sound, or a folder with a folder of them for each class.

        path: or the bytes of such a file, which errors call `name`. progress(rows, total), of .csv,
        stops by returning False. sample_weights, lengths: the array, or the column by its name or
        number from 1, of what samples count and of how many of their positions are real. table:
        options of Network.for_table(), such as {"target": ["price"]}, for a plan of the columns;
        the network keeps it. separator, decimal, thousands,
        encoding: of tables with a plan; empty: detected.
        """
        callbacks, made = Callbacks(), ctypes.c_void_p()
        options = sized(
            _ffi.loom_dataset_options,
            labels=encoded(labels),
            x=encoded(x),
            y=encoded(y),
            targets=targets,
            inputs_only=inputs_only,
            progress=callbacks.wrap(_ffi.loom_progress_fn, progress),
            lengths=encoded(lengths or None),
            has_ignore_label=ignore_label is not None,
            ignore_label=ignore_label or 0,
            **reading_fields(
                classes=classes,
                sample_weights=sample_weights,
                header=header,
                separator=separator,
                decimal=decimal,
                thousands=thousands,
                encoding=encoding,
            ),
        )
        planning = None if table is None else Options("table", dict(table))
        if planning is not None:
            options.table = planning.handle
            network._plan = None
        last = (network.handle, ctypes.byref(options), ctypes.byref(made))
        if is_bytes(path):
            file = FileBytes(path, name)
            code = callbacks.run(lib.loom_dataset_from_memory, *file.arguments, *last)
            callbacks.check(code)
            return cls._of(made.value or 0)

        def read(there: str) -> Dataset:
            callbacks.check(callbacks.run(lib.loom_dataset_from_file, encoded(there), *last))
            return cls._of(made.value or 0)

        dataset, folder = _media.read(path, read)
        dataset._files = folder
        return dataset

    def _info(self) -> Any:
        return report(_ffi.loom_dataset_info, lib.loom_dataset_get_info, self.handle)

    def __len__(self) -> int:
        return int(self._info().samples)

    @property
    def sample(self) -> Tuple[int, ...]:
        """Shape of one input."""
        info = self._info()
        return tuple(info.sample[: info.sample_rank])

    @property
    def has_labels(self) -> bool:
        return bool(self._info().has_labels)

    @property
    def classes(self) -> List[str]:
        """Names, where labels were text."""
        count = self._info().classes
        return [text_from(lib.loom_dataset_class, self.handle, i) for i in range(count)]

    @property
    def notes(self) -> List[str]:
        """On how the file was read."""
        return text_from(lib.loom_dataset_notes, self.handle).splitlines()

    @property
    def x(self) -> Any:
        """Inputs [n, sample], to be read alone."""
        return _read_only(handle_from(lib.loom_dataset_x, self.handle))

    @property
    def y(self) -> Any:
        """Labels [n, places] or targets [n, outputs], to be read alone; empty if there are none."""
        return _read_only(handle_from(lib.loom_dataset_y, self.handle))

    def split(
        self, share: float, *, seed: int = 1, shuffle: bool = True
    ) -> Tuple["Dataset", "Dataset"]:
        """round(share * n) samples, and the rest; by class where every sample has one label."""
        return self._cut(lib.loom_dataset_split, seed, shuffle, share)

    def fold(
        self, number: int, count: int, *, seed: int = 1, shuffle: bool = True
    ) -> Tuple["Dataset", "Dataset"]:
        """Cross-validation: all samples but those of fold `number`, from 0, and those of it."""
        return self._cut(lib.loom_dataset_fold, seed, shuffle, number, count)

    def _cut(self, call: Any, seed: int, shuffle: bool, *how: Any) -> "Tuple[Dataset, Dataset]":
        options = sized(_ffi.loom_split_options, keep_order=not shuffle, has_seed=1, seed=seed)
        first, second, by = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.byref
        check(call(self.handle, *how, by(options), by(first), by(second)))
        parts = self._of(first.value or 0), self._of(second.value or 0)
        for part in parts:
            part._files = self._files
        return parts

    @property
    def info(self) -> Dict[str, Any]:
        """hash of everything in it; columns of a table; files of a folder; further_inputs by
        name; bytes; in_memory."""
        found: Dict[str, Any] = json.loads(text_from(lib.loom_dataset_json, self.handle))
        return found

    def __repr__(self) -> str:
        if self.closed:
            return "<loom.Dataset, closed>"
        kind = "labels" if self.has_labels else "targets or none"
        return f"<loom.Dataset {len(self)} x {list(self.sample)}, {kind}>"


def inputs_of_files(network: Network, paths: "Sequence[Path | bytes]", **reading: Any) -> Any:
    """Samples of files [n, ...], read as the network takes its inputs."""
    found = []
    for path in paths:
        name = "the table" if is_bytes(path) else None
        data = Dataset.from_file(path, network, inputs_only=True, name=name, **reading)
        found.append(data.x)
    if len(found) == 1:
        return found[0]
    numpy = numpy_module()
    if numpy is None:
        raise ImportError("several files need NumPy: pip install numpy")
    return numpy.concatenate(found)


def inputs_of(network: Network, x: Any) -> Any:
    """Inputs of predict() as an array."""
    many = isinstance(x, (list, tuple)) and x and isinstance(x[0], (str, os.PathLike))
    if many:
        return inputs_of_files(network, x)
    if isinstance(x, (str, os.PathLike)):
        return inputs_of_files(network, [x])
    if isinstance(x, bytes) and network.table:
        return inputs_of_files(network, [x])
    table = table_for(network, x)
    if table is not None:
        return inputs_of_files(network, [csv_bytes(table)], **AS_WRITTEN)
    return x.x if isinstance(x, Dataset) else x


def dataset_for(network: Network, x: Any, y: Any = None) -> Dataset:
    """Arrays or a file as a Dataset. Integers are ids only for a network that takes ids."""
    if isinstance(x, (str, os.PathLike)):
        labels = y if isinstance(y, (str, os.PathLike)) else None
        if y is not None and labels is None:
            raise ValueError("a file has its targets with it, or y names a file of them")
        return Dataset.from_file(x, network, labels=labels)
    if isinstance(x, bytes) and network.table:
        return Dataset.from_file(x, network)
    found = table_for(network, x)
    if found is not None:
        target = next((c["name"] for c in network.table["columns"] if c["role"] == "target"), None)
        table = csv_bytes(with_target(found, y, target))
        return Dataset.from_file(table, network, name="the table", **AS_WRITTEN)
    if isinstance(x, Dataset):
        if y is not None:
            raise ValueError("a Dataset has its targets with it; leave out y")
        network._settle_for(x)
        return x
    network._settle_for(x)
    numpy, info = numpy_module(), network.info
    if numpy is not None and not info["takes_ids"] and not isinstance(x, dict):
        x = numpy.asarray(x)
        if x.dtype.kind in "iub":
            x = x.astype(numpy.float32)
    y, names = named(y, info["classes"], info["output"][-1] if info["output"] else None)
    return Dataset(x, y, classes=names or ())


class Trainer(Handle):
    """Changes its network, whose weights are up to date after every call. One thread at a time.

    rate_for: a dict of patterns and factors. rate: None is that of `optimizer`.

    Options, from api/options:

    loss: Loss. Unset: the loss that the network was trained with, else by the data.
    huber_delta: huber: distance at which the loss turns linear; above 0.
    label_smoothing: cross_entropy: share of the target that is spread over all classes; 0 to 1.
    focal_gamma: focal: how strongly easy values count less; 0 or more.
    focal_alpha: focal: weight of targets 1; targets 0 have the rest; 0 to 1.
    quantile: quantile: quantile to predict; between 0 and 1.
    blank: ctc: class of the blank; 0 to 16777216.
    margin: triplet, contrastive: distance by which other labels are farther; above 0.
    temperature: infonce: divisor of the cosines; above 0.
    all_triplets: triplet: uses all triplets of a batch, not the hardest of each sample.
    pairs_across: triplet, contrastive, infonce: compares a row only with rows at other positions of
        their samples, as in CLIP.
    heads: cross_entropy: widths of several predictions side by side, each with a label; empty is
        one; 1 or more.
    optimizer: Optimizer and its constants.
    rate: Learning rate at the start; 0 or more.
    schedule: How the learning rate changes.
    clip: Which gradients are limited to clip_limit.
    clip_limit: norm, layer, value: limit of clip; above 0.
    batch: Samples per batch; 1 or more samples. Unset: 32; all samples for lbfgs.
    accumulate: Batches whose mean gradient makes one update; the last update of an epoch takes the
        remaining ones; 1 to 1048576 batches.
    shuffle: Draws a new order of the samples in every epoch.
    seed: Seed for the order of samples, augmentation and noise.
    normalize: Normalization of the inputs.
    native: Trains packed integer weights with stochastic rounding, without float32 masters.
    class_weights: Weight of each class in the loss. The mean is divided by the sum of the weights;
        0 or more.
    balanced_weights: Weights of classes are samples / (classes x samples of the class).
    balance: Epochs show every class equally often.
    augment: Random changes of training samples.
    metrics: Metrics of validation and evaluation: accuracy, top3, macro_f1, auc, ece, bce, mae, r2;
        any number may replace the 3.
    freeze: Patterns of parameters that do not train; they cost neither gradients nor moments.
    unfreeze: Patterns of parameters that train although the network freezes them.
    rate_for: Factors of the learning rate by pattern; the last match counts; above 0.
    ema: Decay of an exponential average of the weights, which is evaluated and saved; 0 disables
        it; from 0, below 1.
    swa_from: First epoch of a mean of the weights, which is evaluated and saved; 0 disables it; 0
        or more epochs.
    lookahead: Updates between two steps of the slow weights; 0 disables them (Zhang et al., 2019);
        0 to 1000000000 updates.
    lookahead_share: Step of the slow weights towards the fast ones; above 0, up to 1.
    gradient_noise: Standard deviation of normal noise on gradients, after clipping; 0 or more.
    gradient_noise_fade: Exponent f: in update t the deviation is gradient_noise x (1 + t)^(-f / 2);
        0 or more.
    rule: How layers get the signal that they learn from.
    rule_beta: diff_project, fixed_dtp, dtp: step from the prediction towards the target; above 0,
        up to 1.
    rule_gate: Budget below which a layer does not learn; 0 disables budgets; 0 to 0.999. Unset: 0.2
        for chain, else 0.
    rule_noise: dtp: standard deviation of the noise that inverses learn to remove; 0 to 1000.
    rule_inverse_rate: dtp: learning rate of the inverses; 0 to 1000.
    rule_threshold: forward_forward: goodness that separates right labels from wrong ones; 0 to 1e6.
    rule_label_scale: forward_forward: standard deviation of the pattern that a label adds to the
        input; 0 to 1e6.
    rule_temperature: forward_forward: divisor of the goodness; 0 is the width of the layer; 0 to
        1e6.
    carry_feedback: Feedback links read the previous batch, not zeros; docs/state.md.
    checkpoint_cells: Group size of gradient checkpointing; 0 disables it; 0 or more cells.
    """

    _FREE = "loom_trainer_free"

    def __init__(
        self,
        network: Network,
        *,
        # options: generated from api/options
        loss: LossName = "automatic",
        huber_delta: float = 1.0,
        label_smoothing: float = 0.0,
        focal_gamma: float = 2.0,
        focal_alpha: Optional[float] = None,
        quantile: float = 0.5,
        blank: int = 0,
        margin: float = 1.0,
        temperature: float = 0.1,
        all_triplets: bool = False,
        pairs_across: bool = False,
        heads: Sequence[int] = (),
        optimizer: Union[OptimizerKindName, Optimizer] = "adam",
        rate: Optional[float] = None,
        schedule: Union[ScheduleKindName, Schedule] = "constant",
        clip: ClipName = "none",
        clip_limit: float = 1.0,
        batch: Optional[int] = None,
        accumulate: int = 1,
        shuffle: bool = True,
        seed: int = 1,
        normalize: NormalizeName = "as_trained",
        native: bool = False,
        class_weights: Sequence[float] = (),
        balanced_weights: bool = False,
        balance: bool = False,
        augment: Optional[Augment] = None,
        metrics: Sequence[str] = (),
        freeze: Sequence[str] = (),
        unfreeze: Sequence[str] = (),
        rate_for: Optional[Mapping[str, float]] = None,
        ema: float = 0.0,
        swa_from: int = 0,
        lookahead: int = 0,
        lookahead_share: float = 0.5,
        gradient_noise: float = 0.0,
        gradient_noise_fade: float = 0.0,
        rule: RuleName = "back_propagation",
        rule_beta: float = 0.6,
        rule_gate: Optional[float] = None,
        rule_noise: float = 0.1,
        rule_inverse_rate: float = 0.002,
        rule_threshold: float = 2.0,
        rule_label_scale: float = 1.0,
        rule_temperature: float = 0.0,
        carry_feedback: bool = False,
        checkpoint_cells: int = 0,
        # end of options
        engine: Optional[Engine] = None,
    ) -> None:
        given = dict(locals())
        values = {name: given[name] for name in TRAINER_OPTIONS}
        if isinstance(optimizer, Optimizer):
            values["rate"] = optimizer.rate if rate is None else rate
        with Options("trainer", values) as options:
            options.warn_idle()
            super().__init__(
                handle_from(
                    lib.loom_trainer_create_with,
                    network.handle,
                    options.handle,
                    engine_handle(engine),
                )
            )
        self.network = network

    def fit(
        self,
        train: Dataset,
        validation: Optional[Dataset] = None,
        *,
        # options: generated from api/options, FitOptions
        epochs: int = 10,
        early_stop: int = 0,
        checkpoint: Optional[Path] = None,
        checkpoint_every: int = 0,
        resume: bool = False,
        best: Optional[Path] = None,
        keep_best: bool = False,
        # end of options
        on_batch: Optional[Callable[[int, int, float], Any]] = None,
        on_epoch: Optional[Callable[[Epoch], Any]] = None,
        on_validation: Optional[Callable[[int, int], Any]] = None,
        on_layer: Optional[Callable[[LayerStats], Any]] = None,
        on_pass: Optional[Callable[[LayerPass], Any]] = None,
        on_link: Optional[Callable[[LinkStats], Any]] = None,
        on_begin: Optional[Callable[..., Any]] = None,
        telemetry: Optional[Telemetry] = None,
    ) -> History:
        """on_batch(done, steps, loss), on_epoch(epoch) and on_validation(done, total) stop the
        training by returning False, which raises CancelledError; the weights so far stay. So do
        on_layer and on_link, called for each layer after an epoch, and on_pass, in every batch;
        give these to the first fit() of a trainer. on_begin(path, epochs, planned) gets the
        checkpoint that the run continues from, and its epochs. planned: the epochs that this run
        was planned for if they differ from `epochs`, so that the schedule is a new one; else 0.

        Options, from api/options, FitOptions:

        epochs: Times that all samples are seen, with the epochs before a resume. The program
            chooses it for a table without a network; 1 or more epochs.
        early_stop: Ends the run after so many epochs without a better loss; 0 disables it; 0 or
            more epochs.
        checkpoint: File that is written after each epoch; the previous one is PATH.previous.
        checkpoint_every: Writes checkpoint within an epoch too, after so many batches; 0 disables
            it; 0 or more batches.
        resume: Continues from checkpoint, with the bits of a run without a stop.
        best: File for the weights with the least loss.
        keep_best: Ends with the weights of the least loss, not with the last ones.
        """
        given = dict(locals(), checkpoint=encoded(checkpoint), best=encoded(best))
        fields = {name: given[name] for name in FIT_OPTIONS}
        if epochs < 1:
            raise ValueError(f"epochs is {epochs}, must be at least 1")
        callbacks = Callbacks()
        seen = None if on_epoch is None else lambda e: on_epoch(_epoch(e.contents))
        options = sized(
            _ffi.loom_fit_options,
            **fields,
            on_batch=callbacks.wrap(_ffi.loom_batch_fn, on_batch),
            on_epoch=callbacks.wrap(_ffi.loom_epoch_fn, seen, listens=False),
            on_validation=callbacks.wrap(_ffi.loom_progress_fn, on_validation),
            telemetry=None if telemetry is None else telemetry.handle,
            **observers(callbacks, on_layer, on_pass, on_link, on_begin),
        )
        history = ctypes.c_void_p()
        callbacks.check(
            callbacks.run(
                lib.loom_trainer_fit,
                self.handle,
                train.handle,
                None if validation is None else validation.handle,
                ctypes.byref(options),
                ctypes.byref(history),
            )
        )
        try:
            return _history(history)
        finally:
            lib.loom_history_free(history)

    def step(
        self,
        x: Any,
        y: Any = None,
        *,
        loss: Optional[Callable[[Any], Tuple[float, Any]]] = None,
        rate: Optional[float] = None,
    ) -> Tuple[float, bool]:
        """One update from one batch: its loss, and whether weights changed.

        x: an array; a dict of arrays for a network of several inputs, as Dataset takes it; or a
        Dataset, which has its targets. loss: one of your own instead of `y`. It is given what the
        network gave, float32 [batch, ...], and returns (loss, its gradient of that shape).
        """
        if loss is not None and y is not None:
            raise ValueError("give either targets or a loss of your own")
        batch = dataset_for(self.network, x, y)
        if loss is not None:
            return self._own_step(batch, loss, rate)
        other = None if rate is None else ctypes.byref(ctypes.c_double(rate))
        step = lib.loom_trainer_step_samples
        done = report(_ffi.loom_step_report, step, self.handle, batch.handle, other)
        return done.loss, bool(done.updated)

    def _own_step(
        self, batch: Dataset, loss: Callable[[Any], Tuple[float, Any]], rate: Optional[float]
    ) -> Tuple[float, bool]:
        callbacks = Callbacks()

        def asked(outputs: Any, gradients: Any, value: Any) -> None:
            copy = handle_from(lib.loom_array_copy, outputs)
            number, gradient = loss(result(copy))
            given, place = as_tensor(gradient), gradients.contents
            shape = tuple(place.shape[: place.rank])
            if given.shape != shape:
                raise ValueError(f"the gradient is {list(given.shape)}, must be {list(shape)}")
            floats = handle_from(lib.loom_array_copy, given.pointer)
            try:
                as_f32 = Array(handle_from(lib.loom_array_convert, floats, _ffi.DTYPE["float32"]))
            finally:
                lib.loom_array_free(floats)
            ctypes.memmove(place.data, as_f32.view().data, 4 * math.prod(shape))
            value[0] = float(number)

        done = sized(_ffi.loom_step_report)
        other = None if rate is None else ctypes.byref(ctypes.c_double(rate))
        wrapped = callbacks.wrap(_ffi.loom_loss_fn, asked)
        callbacks.check(
            callbacks.run(
                lib.loom_trainer_step_samples_with,
                self.handle, batch.handle, wrapped, None, other, ctypes.byref(done),
            )  # fmt: skip
        )
        return done.loss, bool(done.updated)

    @property
    def bytes(self) -> int:
        """Memory that it took; 0 before the first samples."""
        out = ctypes.c_int64()
        check(lib.loom_trainer_bytes(self.handle, ctypes.byref(out)))
        return out.value

    def evaluate(
        self, data: Dataset, *, progress: Optional[Callable[[int, int], Any]] = None
    ) -> Evaluation:
        """progress(done, total): samples, after each batch; False ends it with CancelledError."""
        text, callbacks = ctypes.c_void_p(), Callbacks()
        callbacks.check(
            callbacks.run(
                lib.loom_trainer_evaluate_json,
                self.handle,
                data.handle,
                callbacks.wrap(_ffi.loom_progress_fn, progress),
                None,
                ctypes.byref(text),
            )
        )
        return _evaluation(json.loads(take_text(text)))

    def calibrate(
        self, data: Dataset, *, progress: Optional[Callable[[int, int], Any]] = None
    ) -> List[Dict[str, Any]]:
        """Narrows the ranges of every matrix below 16 bits to what costs its products least.

        For networks that are done training. Each has name, and the shares that are lost before
        and after: plain, error, kept.
        """
        callbacks, text = Callbacks(), ctypes.c_void_p()
        seen = callbacks.wrap(_ffi.loom_progress_fn, progress)
        call = lib.loom_trainer_calibrate
        code = callbacks.run(call, self.handle, data.handle, seen, None, ctypes.byref(text))
        callbacks.check(code)
        found: List[Dict[str, Any]] = json.loads(take_text(text))
        return found

    def save_weights(self, path: Path) -> None:
        """The weights as they are trained (.safetensors) or as they are packed (.entity)."""
        check(lib.loom_trainer_save_weights(self.handle, encoded(path)))

    def _count(self, function: Any) -> int:
        out = ctypes.c_int64()
        check(function(self.handle, ctypes.byref(out)))
        return out.value

    @property
    def frozen(self) -> int:
        """Numbers in parameters that are frozen."""
        return self._count(lib.loom_trainer_frozen)

    @property
    def epoch(self) -> int:
        """Epochs that are done, those before a resume included."""
        return self._count(lib.loom_trainer_epoch)

    def weights_hash(self) -> str:
        """XXH3-128 of all parameters as float32, in their order."""
        return text_from(lib.loom_trainer_weights_hash, self.handle)


def _history(handle: Any) -> History:
    count, early = ctypes.c_int64(), ctypes.c_int32()
    check(lib.loom_history_count(handle, ctypes.byref(count)))
    check(lib.loom_history_stopped_early(handle, ctypes.byref(early)))
    epochs = [
        _epoch(report(_ffi.loom_epoch, lib.loom_history_epoch, handle, i))
        for i in range(count.value)
    ]
    return History(epochs, bool(early.value))
