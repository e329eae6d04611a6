"""Network: layers with their weights, made of a list of layers, from JSON, or from a file."""

import ctypes
import html
import json
import os
from typing import (
    TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union,
)  # fmt: skip

from . import _ffi
from ._library import (
    Callbacks,
    FileBytes,
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
from .arrays import as_tensor, dtype_name, dtype_number, numpy_module, result
from .engine import Engine, engine_handle
from .errors import InvalidArgumentError
from ._adapters import Adapted
from ._shown import html_table, short_table
from ._tables import network_for_table
from .options import (
    Augment,
    ClipName,
    LossName,
    NormalizeName,
    Optimizer,
    OptimizerKindName,
    RuleName,
    Schedule,
    ScheduleKindName,
    FIT_OPTIONS,
    TRAINER_OPTIONS,
)
from .session import Port, Session

if TYPE_CHECKING:
    from .bridge.plan import Plan
    from .bridge.proof import Proof
    from .telemetry import LayerPass, LayerStats, LinkStats, Telemetry
    from .history import Epoch, History
    from .training import Evaluation

Path = Union[str, "os.PathLike[str]"]

# Arguments of Network.fit() that Trainer.fit() takes as they are, besides FIT_OPTIONS.
_OBSERVERS = ("on_layer", "on_pass", "on_link", "telemetry")


def _load_options(dtype: Optional[str], seed: Optional[int], **more: Any) -> Any:
    return sized(
        _ffi.loom_load_options,
        has_dtype=dtype is not None,
        dtype=0 if dtype is None else dtype_number(dtype),
        has_seed=seed is not None,
        seed=seed or 0,
        **more,
    )


class Network(Adapted):
    """Training changes a network; sessions keep the weights that it had when they were made."""

    _FREE = "loom_network_free"
    _plan: Optional[Dict[str, Any]] = None
    notes: Sequence[str] = ()  # of for_table(): what the columns are, and which are not inputs
    # The plan of a network that loom.absorb() made.
    plan: "Plan | None" = None
    # The epochs of the last fit(), also of one that was stopped.
    history: "History | None" = None

    _make: "Optional[Callable[[Sequence[int]], Network]]" = None

    # ---- making and files ------------------------------------------------------------------------

    @classmethod
    def _pending(cls, make: "Callable[[Sequence[int]], Network]") -> "Network":
        """A network that make(shape of a sample) makes once a sample is there."""
        made = cls(0)
        made._make = make
        return made

    @property
    def handle(self) -> int:
        if self._make is not None and not self._handle:
            raise ValueError(
                "the network does not know its input yet: fit it, or give `input` to Sequential()"
            )
        return super().handle

    def settle(self, shape: Sequence[int]) -> "Network":
        """Makes a network of Sequential() without `input` for samples of this shape.

        fit() and predict() do it with their samples. Networks that know their input stay.
        """
        make, self._make = self._make, None
        if make is not None:
            try:
                made = make(shape)
            except BaseException:
                self._make = make
                raise
            self._handle, made._handle = made._handle, None
        return self

    def _settle_for(self, x: Any) -> None:
        """settle() for a batch of samples."""
        if self._make is None:
            return
        if hasattr(x, "sample"):  # a Dataset
            shape = x.sample
        else:
            if isinstance(x, dict):
                x = next(iter(x.values()))
            shape = as_tensor(x).shape[1:]
        self.settle(tuple(shape) or (1,))

    @classmethod
    def from_json(
        cls,
        description: Union[str, Dict[str, Any]],
        *,
        dtype: Optional[str] = None,
        seed: Optional[int] = None,
        engine: Optional[Engine] = None,
    ) -> "Network":
        """A description as json() and `loom new` write it. `seed` is that of starting weights."""
        text = description if isinstance(description, str) else json.dumps(description)
        options = _load_options(dtype, seed)
        return cls(
            handle_from(
                lib.loom_network_from_json,
                engine_handle(engine),
                encoded(text),
                ctypes.byref(options),
            )
        )

    @classmethod
    def for_table(
        cls,
        data: Any,
        *,
        # options: generated from api/options, TableOptions but share, seed, shuffle
        target: Sequence[str] = (),
        drop: Sequence[str] = (),
        columns: Sequence[str] = (),
        one_hot_limit: int = 100,
        scale_target: bool = True,
        window: int = 0,
        horizon: int = 1,
        stride: int = 1,
        # end of options
        validation_split: float = 0.0,
        seed: int = 1,
        shuffle: bool = True,
        classes: bool = True,
        sample_weights: str = "",
        header: str = "automatic",
        separator: str = "",
        decimal: str = "",
        thousands: str = "",
        encoding: str = "",
        dtype: Optional[str] = None,
        engine: Optional[Engine] = None,
    ) -> "Network":
        """A network that fits a table, with a plan of its columns. It is not trained yet.

        data: the path or the bytes of a .csv file, a frame of pandas or polars, a table of pyarrow,
        or a dict of columns. fit(), evaluate() and predict() of such tables apply the plan: columns
        are found by name, gaps are filled, categories are one-hot encoded, dates split in parts,
        numbers and numeric targets standardized. docs/tables.md

        validation_split, seed, shuffle: those of fit(), so that means and levels are those of the
        rows that train. classes: integer targets are labels. sample_weights: a column.
        `network.table` describes the plan. Errors: NotFoundError, BadFileError, naming row and
        column; InvalidArgumentError (no such column).

        Options, from api/options, TableOptions but share, seed, shuffle:

        target: Columns to predict; several must be numbers. Unset: the last column.
        drop: Columns that are not inputs.
        columns: The only columns that are inputs. Unset: all.
        one_hot_limit: Levels of a category that get an input of their own; rarer ones share one; 1
            to 10000 levels.
        scale_target: Training standardizes numeric targets; the network gives them in their unit.
        window: Above 0, a time series: a sample is so many rows in order, with the target of a
            later row; 0 to 16777216 rows.
        horizon: From the end of a window to its target; 1 to 16777216 rows.
        stride: From the start of a window to that of the next; 1 to 16777216 rows.
        """
        given = dict(locals())
        if not 0.0 <= validation_split < 1.0:
            raise ValueError(f"validation_split is {validation_split}, must be 0 to below 1")
        given["share"] = 1.0 - validation_split if validation_split > 0 else 0.0
        return network_for_table(data, given, _load_options(dtype, seed), engine)

    @property
    def table(self) -> Dict[str, Any]:
        """The plan of the table that the network was made for; empty: it has none."""
        if self._make is not None and not self._handle:
            return {}
        if self._plan is None:
            columns = json.loads(self.json()).get("columns", {})
            self._plan = dict(columns.get("plan", {}))
        return self._plan

    @classmethod
    def load(
        cls,
        path: Union[Path, bytes],
        *,
        name: Optional[str] = None,
        dtype: Optional[str] = None,
        seed: Optional[int] = None,
        weights: Optional[Path] = None,
        open_extent: int = 0,
        engine: Optional[Engine] = None,
        progress: Optional[Callable[[int, int], Any]] = None,
    ) -> "Network":
        """.entity, .json, .onnx, .tflite, .npz, .safetensors. `dtype`: None, as the file has it.

        path: or the bytes of such a file, which errors call `name`; of ONNX it ends in .onnx.
        progress(done, total) stops by returning False.

        weights: a file of weights for one that describes a network. open_extent: of axes that an
        file leaves open, besides the batch; 0: an error.
        """
        callbacks, network = Callbacks(), ctypes.c_void_p()
        options = _load_options(
            dtype,
            seed,
            weights=encoded(weights),
            open_extent=open_extent,
            progress=callbacks.wrap(_ffi.loom_progress_fn, progress),
        )
        last = (ctypes.byref(options), ctypes.byref(network))
        if is_bytes(path):
            file = FileBytes(path, name)
            code = callbacks.run(
                lib.loom_network_load_memory, engine_handle(engine), *file.arguments, *last
            )
        else:
            code = callbacks.run(lib.loom_network_load, engine_handle(engine), encoded(path), *last)
        callbacks.check(code)
        return cls(network.value or 0)

    def save(
        self,
        path: Path,
        *,
        dtype: Optional[str] = None,
        weights: bool = True,
        progress: Optional[Callable[[int, int], Any]] = None,
    ) -> None:
        """The format is that of the ending. `progress(done, total)` stops by returning False."""
        callbacks = Callbacks()
        options = sized(
            _ffi.loom_save_options,
            has_dtype=dtype is not None,
            dtype=0 if dtype is None else dtype_number(dtype),
            without_weights=not weights,
            progress=callbacks.wrap(_ffi.loom_progress_fn, progress),
        )
        callbacks.check(
            callbacks.run(
                lib.loom_network_save, self.handle, encoded(path), ctypes.byref(options)
            )
        )

    def save_bytes(
        self, format: str = "entity", *, dtype: Optional[str] = None, weights: bool = True
    ) -> bytes:
        """The bytes of a file of that format: entity, json, onnx, npz, safetensors."""
        options = sized(
            _ffi.loom_save_options,
            has_dtype=dtype is not None,
            dtype=0 if dtype is None else dtype_number(dtype),
            without_weights=not weights,
        )
        out, size = ctypes.c_void_p(), ctypes.c_int64()
        number = number_of(_ffi.NETWORK_FORMAT, format, "format")
        check(
            lib.loom_network_save_memory(
                self.handle, number, ctypes.byref(options), ctypes.byref(out), ctypes.byref(size)
            )
        )
        try:
            return ctypes.string_at(out.value or 0, size.value)
        finally:
            lib.loom_free(out)

    @property
    def proof(self) -> "Proof | None":
        """That of loom.absorb(), also after loading; None once the weights have changed."""
        from .bridge.proof import carried

        return carried(self)

    def to_torch(self, into: Any = None) -> Any:
        """A torch.nn.Module in evaluation mode with the weights of now.

        Copies the weights back into the module that loom.absorb() read, by the names of its
        state_dict. It returns the module. `into`: into this module of the same class and
        sizes; also of a network that was saved and loaded. Other networks become a
        torch.fx.GraphModule. UnsupportedError names the cell and the field that PyTorch lacks.
        """
        from .bridge.give_back import to_torch

        return to_torch(self, json.loads(self.json()), into)

    def to_keras(self) -> Any:
        """The same as a keras.Sequential, on whatever backend Keras has."""
        from .bridge.give_back import to_keras

        return to_keras(self, json.loads(self.json()))

    def to_onnx(self, path: Path) -> None:
        """save(), whatever the path ends in."""
        with open(path, "wb") as file:
            file.write(self.save_bytes("onnx"))

    def to_safetensors(self, path: Path) -> None:
        """The parameters by their names, whatever the path ends in."""
        with open(path, "wb") as file:
            file.write(self.save_bytes("safetensors"))

    def __reduce__(self) -> Any:
        return Network.load, (self.save_bytes(),)

    # ---- asking ----------------------------------------------------------------------------------

    def predict(self, x: Any, *, batch: int = 256) -> Any:
        """Inputs [n, ...] to float32 outputs [n, ...]. `batch` changes speed, never bits.

        x: an array, a Dataset, or files: the path of an image, a sound, a table or an array, of a
        folder of images or sounds, or a list of paths. Files are read as in training. A network of
        for_table() takes frames and dicts of columns.
        """
        from .training import inputs_of

        x = inputs_of(self, x)
        self._settle_for(x)
        inputs = as_tensor(x)
        samples = inputs.shape[0] if inputs.shape else 1
        with self.session(max_batch=max(1, min(samples, batch))) as session:
            numpy = numpy_module()
            if numpy is None or type(x) is not numpy.ndarray or samples <= batch:
                return session.run(inputs)
            # Piece by piece: Ctrl-C is noticed between calls.
            first = session.run(x[:batch])
            outputs = numpy.empty((samples, *first.shape[1:]), first.dtype)
            outputs[:batch] = first
            for begin in range(batch, samples, batch):
                outputs[begin : begin + batch] = session.run(x[begin : begin + batch])
            return outputs

    def classify(self, x: Any, *, batch: int = 256) -> List[Any]:
        """The class of each sample: the label as it was in training.

        Inputs are those of predict(). A network without class names gives their numbers.
        UnsupportedError: one output, and a loss that has no probabilities.
        """
        from ._labels import label_of

        numpy = numpy_module()
        if numpy is None:
            raise ImportError("classify() needs NumPy: pip install numpy")
        outputs = self.predict(x, batch=batch)
        if outputs.ndim != 2:
            raise InvalidArgumentError("classify() is for networks with one class per sample")
        if outputs.shape[1] == 1:
            best = (numpy.asarray(self.probabilities(outputs))[:, 0] > 0.5).astype(int)
        else:
            best = outputs.argmax(1)
        labels = label_of(self.info["classes"])
        return [labels[i] if i < len(labels) else int(i) for i in best]

    def probabilities(self, outputs: Any) -> Any:
        """Outputs [.., n] as probabilities, if the network was trained for classes."""
        scores = as_tensor(outputs)
        return result(
            handle_from(lib.loom_network_probabilities, self.handle, scores.pointer)
        )

    def session(
        self,
        *,
        max_batch: int = 1,
        quantize_activations: bool = True,
        stateful: bool = False,
        max_steps: int = 0,
        lengths: bool = False,
    ) -> Session:
        """One user of the network, with the memory that running it takes.

        lengths: Session.run() takes the number of real steps of each sample.
        """
        options = sized(
            _ffi.loom_session_options,
            max_batch=max_batch,
            float_activations=not quantize_activations,
            stateful=stateful,
            max_steps=max_steps,
            lengths=lengths,
        )
        session = Session(
            handle_from(lib.loom_network_session, self.handle, ctypes.byref(options))
        )
        session._network = self
        return session

    def _ports(self, outputs: bool) -> List[Port]:
        found, callbacks = [], Callbacks()

        def seen(pointer: Any) -> None:
            port = pointer.contents
            if bool(port.output) == outputs:
                shape = tuple(port.shape[: port.rank])
                found.append(Port(port.name.decode(), shape, bool(port.batched), port.ids))

        sink = callbacks.wrap(_ffi.loom_port_fn, seen)
        callbacks.check(lib.loom_network_ports(self.handle, sink, None))
        return found

    @property
    def inputs(self) -> List[Port]:
        """The inputs, by whose names Session.run() takes arrays."""
        return self._ports(False)

    @property
    def outputs(self) -> List[Port]:
        """The outputs. Session.run() returns all of them for a dict of inputs."""
        return self._ports(True)

    @property
    def info(self) -> Dict[str, Any]:
        """input, output, layers, parameters, bytes, dtype, loss, classes, and what it takes."""
        info = report(_ffi.loom_network_info, lib.loom_network_get_info, self.handle)
        return {
            "input": tuple(info.input[: info.input_rank]),
            "output": tuple(info.output[: info.output_rank]),
            "layers": info.layers,
            "parameters": info.parameters,
            "trainable": info.trainable,
            "bytes": info.bytes,
            "dtype": dtype_name(info.dtype),
            "fresh": bool(info.fresh),
            "trained": bool(info.trained),
            "takes_ids": bool(info.takes_ids),
            "normalizes": bool(info.normalizes),
            "loss": info.loss.decode(),
            "classes": [
                text_from(lib.loom_network_class, self.handle, i) for i in range(info.classes)
            ],
        }

    def json(self) -> str:
        """The description, without weights."""
        return text_from(lib.loom_network_json, self.handle)

    def summary(self) -> str:
        """A table: cells, layers, shapes, parameters."""
        return text_from(lib.loom_network_summary, self.handle)

    # ---- parameters ------------------------------------------------------------------------------

    def parameters(self) -> List[Tuple[str, Tuple[int, ...], str]]:
        """Name, shape and number type of each, in their order."""
        count = ctypes.c_int64()
        check(lib.loom_network_parameter_count(self.handle, ctypes.byref(count)))
        out = []
        for i in range(count.value):
            info = report(
                _ffi.loom_parameter_info, lib.loom_network_parameter_info, self.handle, i
            )
            shape = tuple(info.shape[: info.rank])
            out.append((info.name.decode(), shape, dtype_name(info.dtype)))
        return out

    def parameter(self, name: str) -> Any:
        """Values as float32: a copy."""
        return result(handle_from(lib.loom_network_parameter, self.handle, encoded(name)))

    def set_parameter(self, name: str, values: Any) -> None:
        given = as_tensor(values)
        check(lib.loom_network_set_parameter(self.handle, encoded(name), given.pointer))

    def state_dict(self) -> Dict[str, Any]:
        """All parameters by name, as float32."""
        return {name: self.parameter(name) for name, _, _ in self.parameters()}

    def load_state_dict(self, values: Dict[str, Any]) -> None:
        """The reverse: every parameter has to be there, and no other."""
        names = {name for name, _, _ in self.parameters()}
        if names != set(values):
            differing = ", ".join(sorted(names.symmetric_difference(values)))
            raise KeyError(f"these parameters are on one side only: {differing}")
        for name, value in values.items():
            self.set_parameter(name, value)

    # ---- training --------------------------------------------------------------------------------

    def fit(
        self,
        x: Any,
        y: Any = None,
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
        validation_split: float = 0.0,
        validation_data: Any = None,
        on_batch: Optional[Callable[[int, int, float], Any]] = None,
        on_epoch: "Optional[Callable[[Epoch], Any]]" = None,
        on_layer: "Optional[Callable[[LayerStats], Any]]" = None,
        on_pass: "Optional[Callable[[LayerPass], Any]]" = None,
        on_link: "Optional[Callable[[LinkStats], Any]]" = None,
        telemetry: "Optional[Telemetry]" = None,
        verbose: Optional[bool] = None,
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
    ) -> "History":
        """Trains. x: [n, sample], or a Dataset; y: labels as integers or texts, or numbers.

        validation_split: share of the samples that validates. validation_data: (x, y) or a Dataset.
        verbose: True: a line per epoch on stderr; None: a bar in terminals and notebooks; False:
        nothing. Ctrl-C ends the training; the network keeps the weights so far.
        on_batch(done, steps, loss), on_epoch(epoch), on_layer, on_link and on_pass are called after
        each batch, epoch, layer or pass. If one returns False, the training stops with
        CancelledError. telemetry: the files and addresses of records.
        rate_for: a dict of patterns and factors. rate: None is that of `optimizer`.

        Options, from api/options, FitOptions and TrainerOptions:

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
        pairs_across: triplet, contrastive, infonce: compares a row only with rows at other
            positions of their samples, as in CLIP.
        heads: cross_entropy: widths of several predictions side by side, each with a label; empty
            is one; 1 or more.
        optimizer: Optimizer and its constants.
        rate: Learning rate at the start; 0 or more.
        schedule: How the learning rate changes.
        clip: Which gradients are limited to clip_limit.
        clip_limit: norm, layer, value: limit of clip; above 0.
        batch: Samples per batch; 1 or more samples. Unset: 32; all samples for lbfgs.
        accumulate: Batches whose mean gradient makes one update; the last update of an epoch takes
            the remaining ones; 1 to 1048576 batches.
        shuffle: Draws a new order of the samples in every epoch.
        seed: Seed for the order of samples, augmentation and noise.
        normalize: Normalization of the inputs.
        native: Trains packed integer weights with stochastic rounding, without float32 masters.
        class_weights: Weight of each class in the loss. The mean is divided by the sum of the
            weights; 0 or more.
        balanced_weights: Weights of classes are samples / (classes x samples of the class).
        balance: Epochs show every class equally often.
        augment: Random changes of training samples.
        metrics: Metrics of validation and evaluation: accuracy, top3, macro_f1, auc, ece, bce, mae,
            r2; any number may replace the 3.
        freeze: Patterns of parameters that do not train; they cost neither gradients nor moments.
        unfreeze: Patterns of parameters that train although the network freezes them.
        rate_for: Factors of the learning rate by pattern; the last match counts; above 0.
        ema: Decay of an exponential average of the weights, which is evaluated and saved; 0
            disables it; from 0, below 1.
        swa_from: First epoch of a mean of the weights, which is evaluated and saved; 0 disables it;
            0 or more epochs.
        lookahead: Updates between two steps of the slow weights; 0 disables them (Zhang et al.,
            2019); 0 to 1000000000 updates.
        lookahead_share: Step of the slow weights towards the fast ones; above 0, up to 1.
        gradient_noise: Standard deviation of normal noise on gradients, after clipping; 0 or more.
        gradient_noise_fade: Exponent f: in update t the deviation is gradient_noise x (1 + t)^(-f /
            2); 0 or more.
        rule: How layers get the signal that they learn from.
        rule_beta: diff_project, fixed_dtp, dtp: step from the prediction towards the target; above
            0, up to 1.
        rule_gate: Budget below which a layer does not learn; 0 disables budgets; 0 to 0.999. Unset:
            0.2 for chain, else 0.
        rule_noise: dtp: standard deviation of the noise that inverses learn to remove; 0 to 1000.
        rule_inverse_rate: dtp: learning rate of the inverses; 0 to 1000.
        rule_threshold: forward_forward: goodness that separates right labels from wrong ones; 0 to
            1e6.
        rule_label_scale: forward_forward: standard deviation of the pattern that a label adds to
            the input; 0 to 1e6.
        rule_temperature: forward_forward: divisor of the goodness; 0 is the width of the layer; 0
            to 1e6.
        carry_feedback: Feedback links read the previous batch, not zeros; docs/state.md.
        checkpoint_cells: Group size of gradient checkpointing; 0 disables it; 0 or more cells.
        """
        from ._fitting import fit

        given = dict(locals())
        own = {name: given[name] for name in (*FIT_OPTIONS, *_OBSERVERS)}
        return fit(
            self,
            x,
            y,
            validation_split=validation_split,
            validation_data=validation_data,
            on_batch=on_batch,
            on_epoch=on_epoch,
            verbose=verbose,
            seed=seed,
            fit_options=own,
            options={
                **{n: given[n] for n in TRAINER_OPTIONS if n != "seed"},
                "engine": engine,
            },
        )

    def evaluate(
        self,
        x: Any,
        y: Any = None,
        *,
        loss: Optional[LossName] = None,
        metrics: Sequence[str] = (),
    ) -> "Evaluation":
        """Loss, and accuracy or error, on arrays or a Dataset. `loss`: None, as trained.

        metrics: accuracy, topK (as top3), macro_f1, auc, ece, bce, mae, r2.
        """
        from ._fitting import evaluate

        return evaluate(self, x, y, loss=loss, metrics=metrics)

    # ---- evolution -------------------------------------------------------------------------------

    def dna(self, cell: Sequence[int]) -> Any:
        """The signature of a cell (z, y, x, l): its weights as a vector of length 1, float64."""
        from .evolution import dna

        return dna(self, cell)

    def compare_dna(self, other: "Network", *, mode: str = "functional") -> Dict[str, Any]:
        """loom.evolution.compare_dna()."""
        from .evolution import compare_dna

        return compare_dna(self, other, mode=mode)

    # ---- for people ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        line = self._line()
        return line if self.closed else f"{line}\n{short_table(self.summary())}"

    def _line(self) -> str:
        if self._make is not None and not self._handle:
            return "<loom.Network, its input is not known yet>"
        if self.closed:
            return "<loom.Network, closed>"
        info = self.info
        return (
            f"<loom.Network {list(info['input'])} -> {list(info['output'])}, "
            f"{info['layers']} layers, {info['parameters']} parameters, {info['dtype']}>"
        )

    def _repr_html_(self) -> str:
        if self.closed:
            return f"<p>{html.escape(self._line())}</p>"
        table = html_table(self.summary())
        return f"<p>{html.escape(self._line())}</p><table>{table}</table>"

