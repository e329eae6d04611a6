"""Network.fit() and Network.evaluate(): a trainer for one call, with progress and Ctrl-C."""

import sys
import warnings
from typing import Any, Callable, List, Optional, Sequence

from ._progress import Progress
from .history import Epoch, History
from .network import Network, Path
from .options import LossName
from .training import Dataset, Evaluation, Trainer, dataset_for


def _validation(network: Network, data: Any) -> Optional[Dataset]:
    if data is None:
        return None
    x, y = data if isinstance(data, tuple) else (data, None)
    return dataset_for(network, x, y)


def _advice(done: int, epochs: int, checkpoint: Optional[Path]) -> str:
    """How to go on after Ctrl-C."""
    if checkpoint is not None and done > 0:
        how = f"fit(..., epochs={epochs}, checkpoint={str(checkpoint)!r}, resume=True) goes on"
    else:
        how = f"fit(..., epochs={max(1, epochs - done)}) goes on from them"
    return (
        f"stopped in epoch {min(done + 1, epochs)} of {epochs}; the network has the weights so "
        f"far, and its `history` the epochs; {how}"
    )


class _Watch:
    """The callbacks of a fit: those of the caller, the bar, and the epochs so far."""

    def __init__(
        self,
        epochs: int,
        verbose: Optional[bool],
        on_batch: Optional[Callable[[int, int, float], Any]],
        on_epoch: Optional[Callable[[Epoch], Any]],
    ) -> None:
        self.epochs = epochs
        self.seen: List[Epoch] = []
        self._batch, self._epoch = on_batch, on_epoch
        self.bar = None if verbose is False else Progress(epochs, lines=bool(verbose))

    @property
    def on_batch(self) -> Optional[Callable[[int, int, float], Any]]:
        return self.batch if self.bar is not None and self.bar.shows else self._batch

    def batch(self, done: int, steps: int, loss: float) -> Any:
        if self.bar is not None:
            self.bar.batch(done, steps, loss)
        return None if self._batch is None else self._batch(done, steps, loss)

    def epoch(self, epoch: Epoch) -> Any:
        self.seen.append(epoch)
        if self.bar is not None:
            self.bar.epoch(epoch.number, epoch.line(self.epochs))
        return None if self._epoch is None else self._epoch(epoch)

    def end(self) -> None:
        if self.bar is not None:
            self.bar.end()


def fit(
    network: Network,
    x: Any,
    y: Any = None,
    *,
    validation_split: float,
    validation_data: Any,
    on_batch: Optional[Callable[[int, int, float], Any]],
    on_epoch: Optional[Callable[[Epoch], Any]],
    verbose: Optional[bool],
    seed: int,
    fit_options: "dict[str, Any]",
    options: "dict[str, Any]",
) -> History:
    """fit_options: other arguments of Trainer.fit(); options: those of Trainer."""
    train = dataset_for(network, x, y)
    validation = _validation(network, validation_data)
    if validation is None and validation_split > 0:
        shuffle = options.get("shuffle", True)
        train, validation = train.split(1.0 - validation_split, seed=seed, shuffle=shuffle)
        for note in train.notes:
            warnings.warn(note, stacklevel=3)
    epochs = fit_options["epochs"]
    watch = _Watch(epochs, verbose, on_batch, on_epoch)
    with Trainer(network, seed=seed, **options) as trainer:
        try:
            network.history = trainer.fit(
                train,
                validation,
                on_batch=watch.on_batch,
                on_epoch=watch.epoch,
                **fit_options,
            )
        except BaseException as error:
            network.history = History(watch.seen)
            watch.end()
            if isinstance(error, KeyboardInterrupt):
                checkpoint = fit_options["checkpoint"]
                print(_advice(len(watch.seen), epochs, checkpoint), file=sys.stderr)
            raise
    watch.end()
    return network.history


def evaluate(
    network: Network, x: Any, y: Any, *, loss: Optional[LossName], metrics: Sequence[str]
) -> Evaluation:
    data = dataset_for(network, x, y)
    with Trainer(network, loss=loss or "automatic", metrics=metrics) as trainer:
        return trainer.evaluate(data)
