"""Loom as estimators of scikit-learn, which has to be installed: pipelines, grid search, scores.

from loom.sklearn import LoomClassifier, LoomRegressor

LoomClassifier(hidden=(64,), epochs=50).fit(x, y).predict(x)
"""

import sys
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .engine import Engine
from .layers import Dense
from ._sequential import Sequential
from .history import Epoch
from .network import Network
from .options import OPTIMIZERS, LossName
from ._tables import AS_WRITTEN, csv_bytes, is_table, with_target
from .training import Dataset, Trainer, inputs_of_files

__all__ = ["LoomClassifier", "LoomRegressor"]


class _LoomEstimator(BaseEstimator):
    """Dense layers over rows of features. Inputs are shifted and scaled as the training data ask.

    hidden: widths of the layers between; activation: of them; epochs, batch, optimizer, rate and
    weight_decay: as Trainer takes them; early_stop: epochs without a better loss on the share
    `validation_fraction` that is kept back, 0: never; random_state: of the starting weights and of
    the order of samples; threads: 0, all cores. The result depends on the data and on these alone,
    and not on threads.
    """

    def __init__(
        self,
        hidden: Sequence[int] = (64,),
        *,
        activation: str = "relu",
        epochs: int = 100,
        batch: int = 32,
        optimizer: str = "adam",
        rate: float = 1e-2,
        weight_decay: float = 0.0,
        early_stop: int = 0,
        validation_fraction: float = 0.1,
        dtype: str = "float32",
        threads: int = 0,
        random_state: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.epochs = epochs
        self.batch = batch
        self.optimizer = optimizer
        self.rate = rate
        self.weight_decay = weight_decay
        self.early_stop = early_stop
        self.validation_fraction = validation_fraction
        self.dtype = dtype
        self.threads = threads
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    classes_: Any  # of classifiers

    # ---- what both kinds share -------------------------------------------------------------------

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(1, 2**31 - 1))

    def _engine(self) -> Optional[Engine]:
        return Engine(self.threads) if self.threads else None

    def _layers(self, inputs: int, outputs: int) -> List[Dense]:
        widths = [inputs, *(int(width) for width in self.hidden)]
        between = [
            Dense(a, b, activation=self.activation) for a, b in zip(widths, widths[1:])
        ]
        return [*between, Dense(widths[-1], outputs)]

    def _scaled(self, x: Any) -> Any:
        return ((x - self._mean) / self._scale).astype(np.float32)

    def __getstate__(self) -> Any:
        """Without the trainer of partial_fit(), which goes on anew after a copy."""
        state = dict(super().__getstate__())
        state.pop("_trainer", None)
        return state

    def _encoded(self, x: Any, fit: bool = False) -> Any:
        """A frame with texts, dates or gaps as numbers, by a plan of its columns in training."""
        if fit:
            self._encoder: Optional[Network] = _encoder_of(x)
        encoder = getattr(self, "_encoder", None)
        if encoder is None:
            return x
        if not is_table(x):
            raise ValueError("the estimator was trained with a table; give one with its columns")
        return inputs_of_files(encoder, [csv_bytes(x)], **AS_WRITTEN)

    def _goes_on(self) -> bool:
        return self.warm_start and hasattr(self, "network_")

    def _start(self, x: Any, outputs: int, seed: int) -> None:
        """A new network for x [n, features]."""
        self._drop_trainer()
        self._mean, self._scale = _moments(x)
        self.network_: Network = Sequential(
            self._layers(x.shape[1], outputs),
            input=x.shape[1],
            seed=seed,
            dtype=self.dtype,
            engine=self._engine(),
        )
        self.n_iter_ = 0
        self.loss_curve_: List[float] = []

    def _drop_trainer(self) -> None:
        trainer = self.__dict__.pop("_trainer", None)
        if trainer is not None:
            trainer.close()

    def _new_trainer(self, loss: LossName, seed: int) -> Trainer:
        decay = self.weight_decay or None  # None: that of the optimizer
        optimizer = OPTIMIZERS[self.optimizer](rate=self.rate, weight_decay=decay)
        network = self.network_
        return Trainer(network, loss=loss, optimizer=optimizer, batch=self.batch, seed=seed)

    def _train(self, x: Any, y: Any, outputs: int, loss: LossName) -> None:
        """Fits the network to x [n, features] and y."""
        seed = self._seed()
        if self._goes_on():
            self._drop_trainer()
        else:
            self._start(x, outputs, seed)
        train, validation = Dataset(self._scaled(x), y), None
        if self.early_stop > 0:
            train, validation = train.split(1.0 - self.validation_fraction, seed=seed)
        with self._new_trainer(loss, seed) as trainer:
            history = trainer.fit(
                train,
                validation,
                epochs=self.epochs,
                early_stop=self.early_stop,
                keep_best=self.early_stop > 0,
                on_epoch=self._told if self.verbose else None,
            )
        self._count(history.epochs)

    def _train_more(self, x: Any, y: Any, loss: LossName) -> None:
        """One epoch, with the moments of the optimizer as they are."""
        if "_trainer" not in self.__dict__:
            self._trainer = self._new_trainer(loss, self._seed())
        done = self._trainer.epoch
        history = self._trainer.fit(
            Dataset(self._scaled(x), y),
            epochs=done + 1,
            on_epoch=self._told if self.verbose else None,
        )
        self._count(history.epochs[done:])

    def _told(self, epoch: Epoch) -> None:
        print(epoch.line(self.epochs), file=sys.stderr)

    def _count(self, epochs: Sequence[Epoch]) -> None:
        self.n_iter_ += len(epochs)
        self.loss_curve_ += [epoch.train_loss for epoch in epochs]

    def _outputs(self, x: Any) -> Any:
        check_is_fitted(self, "network_")
        rows = validate_data(self, self._encoded(x), reset=False, dtype=np.float64)
        return self.network_.predict(self._scaled(rows))


def _encoder_of(x: Any) -> Optional[Network]:
    """A network whose plan reads the frame; None: x is an array, or has numbers alone."""
    if not is_table(x):
        return None
    values = np.asarray(x)
    if values.dtype.kind in "biu" or (values.dtype.kind == "f" and np.isfinite(values).all()):
        return None
    target = [i + 0.5 for i in range(len(values))]  # the plan of the inputs does not depend on it
    return Network.for_table(with_target(x, target, _TARGET), target=[_TARGET])


_TARGET = "target of the estimator"


def _moments(values: Any) -> Tuple[Any, Any]:
    """Mean and standard deviation of each column; 1 for one that does not vary."""
    mean, scale = values.mean(axis=0), values.std(axis=0)
    return mean, np.where(scale > 0, scale, 1.0)


class LoomClassifier(ClassifierMixin, _LoomEstimator):
    """A classifier of dense layers; see LoomRegressor for numbers. classes_, network_, n_iter_."""

    __doc__ = f"{__doc__}\n\n{_LoomEstimator.__doc__}"

    def fit(self, X: Any, y: Any) -> "LoomClassifier":
        """X: [n, features], or a frame of any columns; y: [n] labels of any kind."""
        rows, labels = validate_data(self, self._encoded(X, True), y, dtype=np.float64)
        check_classification_targets(labels)
        classes, numbers = np.unique(labels, return_inverse=True)
        if self._goes_on() and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"warm_start: the labels are {classes.tolist()}, before they were "
                f"{self.classes_.tolist()}; give the same classes, or a new estimator"
            )
        self.classes_ = classes
        self._train(rows, numbers.astype(np.int32), max(len(self.classes_), 2), "cross_entropy")
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> "LoomClassifier":
        """One more epoch over X. classes: all labels, in the first call."""
        first = not hasattr(self, "network_")
        rows, labels = validate_data(self, X, y, dtype=np.float64, reset=first)
        check_classification_targets(labels)
        if first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit")
            self.classes_ = np.unique(classes)
            self._start(rows, max(len(self.classes_), 2), self._seed())
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"`classes` is {classes!r}; give {self.classes_.tolist()} as before")
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise ValueError(f"label {unknown[0]!r} is not in `classes`")
        numbers = np.searchsorted(self.classes_, labels).astype(np.int32)
        self._train_more(rows, numbers, "cross_entropy")
        return self

    def predict_proba(self, X: Any) -> Any:
        """[n, classes] probabilities: softmax of the outputs."""
        scores = self._outputs(X).astype(np.float64)[:, : len(self.classes_)]
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """[n] the label with the largest output."""
        scores = self._outputs(X)[:, : len(self.classes_)]
        return self.classes_[scores.argmax(axis=1)]


class LoomRegressor(RegressorMixin, _LoomEstimator):
    """A regressor of dense layers, for one number per row or several. network_, n_iter_."""

    __doc__ = f"{__doc__}\n\n{_LoomEstimator.__doc__}"

    def fit(self, X: Any, y: Any) -> "LoomRegressor":
        """X: [n, features], or a frame of any columns; y: [n] or [n, outputs]."""
        rows, columns = self._checked(self._encoded(X, True), y, reset=True)
        if not self._goes_on():
            self._y_mean, self._y_scale = _moments(columns)
        self._train(rows, self._goals(columns), columns.shape[1], "mse")
        return self

    def partial_fit(self, X: Any, y: Any) -> "LoomRegressor":
        """One more epoch over X."""
        first = not hasattr(self, "network_")
        rows, columns = self._checked(X, y, reset=first)
        if first:
            self._y_mean, self._y_scale = _moments(columns)
            self._start(rows, columns.shape[1], self._seed())
        self._train_more(rows, self._goals(columns), "mse")
        return self

    def _checked(self, X: Any, y: Any, reset: bool) -> Tuple[Any, Any]:
        rows: Any
        targets: Any
        rows, targets = validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, reset=reset
        )
        self._shape = targets.shape[1:]
        return rows, targets.reshape(len(targets), -1).astype(np.float64)

    def _goals(self, columns: Any) -> Any:
        return ((columns - self._y_mean) / self._y_scale).astype(np.float32)

    def predict(self, X: Any) -> Any:
        """[n] or [n, outputs], as y was."""
        values = self._outputs(X) * self._y_scale + self._y_mean
        return values.reshape(len(values), *self._shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
