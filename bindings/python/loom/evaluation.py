"""How far answers are off, and how fast a network that learns while it runs takes to a new task.

off = loom.DeviationMetrics()
off.add(predictions, truths)
print(off.summary.score, off.worst(10))
"""

import ctypes
import json
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from . import _ffi
from ._library import Handle, check, encoded, handle_from, lib, sized, text_from
from .arrays import result
from .network import Path


class DeviationSummary(NamedTuple):
    samples: int
    invalid: int  # answers that are not finite; they are in the last bucket
    failures: int  # deviations above 100 %, the invalid ones included
    score: float  # mean of max(0, 100 - deviation), invalid answers as 0
    average: float  # mean deviation of the others
    accuracy: float  # share that is exactly right, in percent


def _doubles(values: Any) -> Any:
    numbers = [float(value) for value in values]
    return (ctypes.c_double * len(numbers))(*numbers)


def _wholes(values: Any) -> Any:
    numbers = [int(value) for value in values]
    return (ctypes.c_int64 * len(numbers))(*numbers)


def _pairs(answers: Any, truths: Any) -> None:
    if len(answers) != len(truths):
        raise ValueError(f"{len(answers)} answers for {len(truths)} truths; give one each")


class DeviationMetrics(Handle):
    """Deviation in percent of answers a from truths e: 100 |a - e| / |e|. docs/evaluation.md"""

    _FREE = "loom_deviation_free"

    def __init__(self) -> None:
        super().__init__(handle_from(lib.loom_deviation_create))

    def add(self, answers: Sequence[float], truths: Sequence[float]) -> None:
        said, wanted = _doubles(answers), _doubles(truths)
        _pairs(said, wanted)
        check(lib.loom_deviation_add(self.handle, said, wanted, len(said)))

    def add_class(self, called: Sequence[int], classes: Sequence[int]) -> None:
        """Classes: 0 if they are equal, else 100 percent."""
        said, wanted = _wholes(called), _wholes(classes)
        _pairs(said, wanted)
        check(lib.loom_deviation_add_classes(self.handle, said, wanted, len(said)))

    def json(self) -> Dict[str, Any]:
        """The summary, the sizes of the buckets, and all samples."""
        found: Dict[str, Any] = json.loads(text_from(lib.loom_deviation_json, self.handle))
        return found

    @property
    def summary(self) -> DeviationSummary:
        told = self.json()
        told["average"] = told["average_deviation"]
        return DeviationSummary(**{name: told[name] for name in DeviationSummary._fields})

    @property
    def samples(self) -> List[Dict[str, Any]]:
        """answer, truth and deviation of each, in the order they were added."""
        return list(self.json()["results"])

    def buckets(self) -> Dict[str, List[int]]:
        """Places of the samples by their deviation: "0-10%", ..., "100%+"."""
        return {name: self.in_bucket(name) for name in self.json()["buckets"]}

    def in_bucket(self, name: str) -> List[int]:
        """Places of the samples of a bucket."""
        call = lib.loom_deviation_bucket
        found: List[int] = result(handle_from(call, self.handle, encoded(name))).tolist()
        return found

    def worst(self, count: int) -> List[int]:
        """Places of the samples that are off most, the earlier of equals first."""
        found: List[int] = result(
            handle_from(lib.loom_deviation_worst, self.handle, count)
        ).tolist()
        return found

    @classmethod
    def from_json(cls, text: str) -> "DeviationMetrics":
        made = cls.__new__(cls)
        Handle.__init__(made, handle_from(lib.loom_deviation_from_json, encoded(text)))
        return made

    def save(self, path: Path) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text_from(lib.loom_deviation_json, self.handle) + "\n")

    @classmethod
    def load(cls, path: Path) -> "DeviationMetrics":
        with open(path, encoding="utf-8") as file:
            return cls.from_json(file.read())


class AdaptationWindow(NamedTuple):
    outputs: int
    right: int
    accuracy: float  # percent; 0 without outputs
    outputs_per_second: float
    task: int  # in force when the window began


class TaskChange(NamedTuple):
    at: float  # seconds, as it was scheduled
    from_task: int
    to_task: int
    window_before: int
    window_after: int
    before: float  # accuracies of these windows, in percent
    after: float
    recovery_windows: int  # from window_after to the first that has recovered
    recovery_seconds: float  # -1 means not before the next change or the end


class AdaptationReport(NamedTuple):
    outputs: int  # inside of the windows
    average: float  # accuracy over windows with outputs, in percent
    variance: float
    least: float
    windows: Tuple[AdaptationWindow, ...]
    changes: Tuple[TaskChange, ...]  # those that came about


def _change(values: Dict[str, Any]) -> TaskChange:
    values["from_task"], values["to_task"] = values.pop("from"), values.pop("to")
    return TaskChange(**values)


class AdaptationTracker(Handle):
    """Accuracy by windows of time while tasks change. One thread at a time."""

    _FREE = "loom_adaptation_free"

    def __init__(
        self,
        *,
        # options: generated from api/options, AdaptationOptions
        duration: float = 15.0,
        window: float = 1.0,
        threshold: float = 50.0,
        relative: bool = False,
        # end of options
    ) -> None:
        """The clock begins with start().

        Options, from api/options, AdaptationOptions:

        duration: Length of the run; above 0 seconds.
        window: Length of a window; above 0 seconds.
        threshold: Accuracy of a window that has recovered after a change; 0 to 100 percent.
        relative: The threshold is a share of the accuracy before the change.
        """
        for name, value in {"duration": duration, "window": window, "threshold": threshold}.items():
            if not value > 0:  # C takes 0 as the default
                raise ValueError(f"{name} is {value}, must be above 0")
        options = sized(
            _ffi.loom_adaptation_options,
            duration=duration,
            window=window,
            threshold=threshold,
            relative=relative,
        )
        super().__init__(handle_from(lib.loom_adaptation_create, ctypes.byref(options)))

    def schedule(self, at: float, task: int) -> None:
        """From `at` seconds on another task is in force. Before start(), in order."""
        check(lib.loom_adaptation_schedule(self.handle, at, task))

    def start(self, task: int) -> None:
        """The clock begins."""
        check(lib.loom_adaptation_start(self.handle, task))

    def _record(self, right: int) -> Tuple[int, bool]:
        task, over = ctypes.c_int64(), ctypes.c_int32()
        call = lib.loom_adaptation_record
        check(call(self.handle, right, ctypes.byref(task), ctypes.byref(over)))
        return task.value, bool(over.value)

    def record(self, right: bool) -> int:
        """Counts an output in the window of now. Returns the task in force for it."""
        return self._record(int(bool(right)))[0]

    @property
    def task(self) -> int:
        """The task in force now."""
        return self._record(-1)[0]

    @property
    def over(self) -> bool:
        """Whether the duration has passed."""
        return self._record(-1)[1]

    def report(self) -> AdaptationReport:
        told = json.loads(text_from(lib.loom_adaptation_json, self.handle))
        told["windows"] = tuple(AdaptationWindow(**window) for window in told["windows"])
        told["changes"] = tuple(_change(change) for change in told["changes"])
        return AdaptationReport(**told)
