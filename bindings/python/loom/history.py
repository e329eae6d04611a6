"""History: the epochs of a training as lists, a chart and a table."""

import html
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Dict, List, Optional

from ._chart import Svg, chart

_LOSSES = ("loss", "val_loss")
_SHARES = ("accuracy", "auc", "f1", "ece", "top")  # metrics from 0 to 1


@dataclass(frozen=True)
class Epoch:
    """An epoch that is done. Validation figures are None if nothing validates."""

    number: int
    train_loss: float
    validation_loss: Optional[float]
    validation_accuracy: Optional[float]
    rate: float
    gradient_norm: float
    dropped: int
    best: bool
    samples_per_second: float
    validation_metrics: Dict[str, float] = field(default_factory=dict)

    def line(self, epochs: int) -> str:
        """One line for a terminal."""
        line = f"epoch {self.number}/{epochs}  loss {self.train_loss:.5f}"
        if self.validation_loss is not None:
            line += f"  validation {self.validation_loss:.5f}"
        if self.validation_accuracy is not None:
            line += f"  accuracy {100 * self.validation_accuracy:.2f} %"
        return line


@dataclass(frozen=True, repr=False)
class History:
    """The results of a fit. `history` has a list per figure, as in other libraries.

    Notebooks show a chart and a table.
    """

    epochs: List[Epoch]
    stopped_early: bool = False

    @property
    def history(self) -> Dict[str, List[Any]]:
        out: Dict[str, List[Any]] = {"loss": [e.train_loss for e in self.epochs]}
        if self.epochs and self.epochs[0].validation_loss is not None:
            out["val_loss"] = [e.validation_loss for e in self.epochs]
        if self.epochs and self.epochs[0].validation_accuracy is not None:
            out["val_accuracy"] = [e.validation_accuracy for e in self.epochs]
        for name in self.epochs[0].validation_metrics if self.epochs else ():
            out[f"val_{name}"] = [e.validation_metrics[name] for e in self.epochs]
        return out

    def _panels(self) -> Dict[str, Dict[str, List[Any]]]:
        """Figures by their unit: losses, shares from 0 to 1, and one panel for each other."""
        panels: Dict[str, Dict[str, List[Any]]] = {}
        for name, values in self.history.items():
            if name in _LOSSES:
                title = "loss"
            elif any(word in name for word in _SHARES):
                title = "validation"
            else:
                title = name[len("val_") :]
            panels.setdefault(title, {})[name] = values
        return panels

    def plot(self, path: Optional[str] = None) -> Any:
        """A chart of all figures: a Figure if matplotlib is installed, else an SVG text.

        path: writes the chart there. A path that ends in .svg never needs matplotlib.
        """
        if not self.epochs:
            raise ValueError("there is no epoch to plot")
        if path is None or not str(path).endswith(".svg"):
            try:
                return self._figure(path)
            except ImportError:
                if path is not None:
                    raise ImportError(
                        f"'{path}' needs matplotlib: pip install matplotlib, or end it in .svg"
                    ) from None
        drawn = self._svg()
        if path is not None:
            drawn.save(path)
        return drawn

    def _svg(self) -> Svg:
        return chart({title: dict(lines) for title, lines in self._panels().items()})

    def _figure(self, path: Optional[str]) -> Any:
        make: Any = import_module("matplotlib.figure").Figure
        panels = self._panels()
        figure = make(figsize=(4.6 * len(panels), 3.2), layout="constrained")
        for at, (title, lines) in enumerate(panels.items()):
            axes = figure.add_subplot(1, len(panels), at + 1)
            for name, values in lines.items():
                axes.plot(range(1, len(values) + 1), values, label=name)
            axes.set_title(title)
            axes.set_xlabel("epoch")
            axes.legend()
        if path is not None:
            figure.savefig(path)
        return figure

    def __repr__(self) -> str:
        if not self.epochs:
            return "<loom.History, no epochs>"
        last = {name: values[-1] for name, values in self.history.items()}
        figures = ", ".join(f"{name} {value:.5g}" for name, value in last.items())
        early = ", stopped early" if self.stopped_early else ""
        return f"<loom.History {self.epochs[-1].number} epochs{early}, {figures}>"

    def _repr_html_(self) -> str:
        if not self.epochs:
            return "<p>no epochs</p>"
        columns = self.history
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ("epoch", *columns))
        last = self.epochs[-1]
        shown = sorted({0, len(self.epochs) - 1, *(i for i, e in enumerate(self.epochs) if e.best)})
        rows = "".join(
            f"<tr><td>{self.epochs[i].number}</td>"
            + "".join(f"<td>{values[i]:.5g}</td>" for values in columns.values())
            + "</tr>"
            for i in (shown if len(shown) <= 5 else [0, *shown[-4:]])
        )
        early = ", stopped early" if self.stopped_early else ""
        return (
            f"<p>{last.number} epochs{early}</p>{self._svg()}"
            f"<table><tr>{head}</tr>{rows}</table>"
        )
