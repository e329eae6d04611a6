"""Grouping: points by k-means or by linkage, and how good groups are.

groups = loom.kmeans(points, clusters=3, seed=7)
loom.silhouette(points, groups.labels)
tree = loom.linkage(points, method="average")
labels = tree.cut_at(0.5)
"""

import ctypes
import json
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional

from . import _ffi
from ._library import Callbacks, check, encoded, handle_from, lib, number_of, sized, text_from
from ._options import Options
from .arrays import as_tensor, result
from .engine import Engine, engine_handle
from .network import Path
from .options import KMEANS_OPTIONS, LINKAGE_OPTIONS, DistanceName, LinkageMethodName


def _labels(values: Any) -> Any:
    numbers = [int(value) for value in values]
    return (ctypes.c_int64 * len(numbers))(*numbers), len(numbers)


@dataclass(frozen=True)
class Clusters:
    """Groups of points, and how k-means ended."""

    labels: Any  # int64 [n]: the nearest centre of each point, the first of equal ones
    centers: Any  # float64 [clusters, d]
    inertia: float  # sum of the squared distances to them
    rounds: int
    converged: bool


def kmeans(
    points: Any,
    *,
    # options: generated from api/options, KMeansOptions
    clusters: int = 8,
    seed: int = 1,
    plus_plus: bool = True,
    most_rounds: int = 300,
    tolerance: float = 0.0001,
    restarts: int = 10,
    # end of options
    start: Any = None,
    progress: Optional[Callable[[int, int], Any]] = None,
    engine: Optional[Engine] = None,
) -> Clusters:
    """Groups of points [n, d] by Lloyd's algorithm, Euclidean.

    start: centres to begin with, [clusters, d]. progress: called with the restarts that are done
    and all of them; False stops. Equal points and seed give equal groups, whatever the threads.

    Options, from api/options, KMeansOptions:

    clusters: Number of groups, at most the number of points; 1 or more.
    seed: Seed of the first centres.
    plus_plus: Draws the first centres by k-means++ (Arthur and Vassilvitskii, 2007), each by the
        square of its distance to those there are; else distinct points, all equally likely.
    most_rounds: Largest number of rounds; 1 or more.
    tolerance: Ends when the squares of what centres moved sum to this times the mean variance of
        the columns, or when no point changes its group; 0 or more.
    restarts: Runs with other draws, of which the least inertia wins; one with start; 1 or more.
    """
    given = dict(locals())
    callbacks = Callbacks()
    labels, centers = ctypes.c_void_p(), ctypes.c_void_p()
    report = sized(_ffi.loom_kmeans_report)
    first = None if start is None else as_tensor(start)
    with Options("kmeans", {name: given[name] for name in KMEANS_OPTIONS}) as options:
        how = sized(
            _ffi.loom_kmeans_options,
            options=options.handle,
            start=None if first is None else ctypes.pointer(first.tensor),
            progress=callbacks.wrap(_ffi.loom_progress_fn, progress),
        )
        code = callbacks.run(
            lib.loom_kmeans,
            engine_handle(engine),
            as_tensor(points).pointer,
            ctypes.byref(how),
            ctypes.byref(labels),
            ctypes.byref(centers),
            ctypes.byref(report),
        )
    callbacks.check(code)
    return Clusters(
        result(labels.value or 0),
        result(centers.value or 0),
        report.inertia,
        report.rounds,
        bool(report.converged),
    )


def silhouette(
    points: Any,
    labels: Any,
    *,
    distance: DistanceName = "euclidean",
    engine: Optional[Engine] = None,
) -> float:
    """How good groups are, -1 to 1: the mean of (b - a) / max(a, b) over all points.

    a is the mean distance to the others of the group, b the least mean distance to another one.
    """
    out = ctypes.c_double()
    groups, count = _labels(labels)
    number = number_of(_ffi.DISTANCE, distance, "distance")
    tensor = as_tensor(points).pointer
    on = engine_handle(engine)
    check(lib.loom_silhouette(on, tensor, groups, count, number, ctypes.byref(out)))
    return out.value


class Linkage:
    """A tree of merges. merges: float64 [n - 1, 4], group a, group b, distance, points of both.

    Points are groups 0 to n - 1, and the i-th merge makes group n + i: the form of SciPy.
    """

    def __init__(self, merges: Any) -> None:
        self.merges = merges

    def cut_at(self, threshold: float) -> Any:
        """Labels of all points: groups that merge at `threshold` or nearer are one."""
        return self._cut(float(threshold), 0)

    def cut_into(self, groups: int) -> Any:
        """Labels of all points, in so many groups."""
        if groups < 1:
            raise ValueError(f"groups is {groups}, must be 1 or more")
        return self._cut(0.0, groups)

    def _cut(self, threshold: float, groups: int) -> Any:
        tensor = as_tensor(self.merges).pointer
        return result(handle_from(lib.loom_linkage_cut, tensor, threshold, groups))

    def __repr__(self) -> str:
        return f"<loom.Linkage of {len(self.merges) + 1} points>"


def linkage(
    points: Any,
    *,
    # options: generated from api/options, LinkageOptions
    method: LinkageMethodName = "single",
    distance: DistanceName = "euclidean",
    # end of options
    engine: Optional[Engine] = None,
) -> Linkage:
    """The tree of merges of points [n, d]. Takes n^2 / 2 distances in memory.

    Options, from api/options, LinkageOptions:

    method: How far two groups are from each other.
    distance: How far two points are from each other.
    """
    given = dict(locals())
    with Options("linkage", {name: given[name] for name in LINKAGE_OPTIONS}) as options:
        tensor, on = as_tensor(points).pointer, engine_handle(engine)
        return Linkage(result(handle_from(lib.loom_linkage, on, tensor, options.handle)))


def linkage_of_distances(distances: Any, *, method: LinkageMethodName = "single") -> Linkage:
    """The same of distances [n, n], symmetric, 0 on the diagonal."""
    with Options("linkage", {"method": method}) as options:
        tensor = as_tensor(distances).pointer
        return Linkage(result(handle_from(lib.loom_linkage_of_distances, tensor, options.handle)))


def load_points(path: Path, *, array: str = "x", engine: Optional[Engine] = None) -> Any:
    """Points [n, d] of a .csv, .npy, .npz, .safetensors or IDX file."""
    on = engine_handle(engine)
    return result(handle_from(lib.loom_load_points, on, encoded(path), encoded(array)))


def group_tensors(path: Path) -> List[Dict[str, Any]]:
    """The tensors of a checkpoint by the layers that their names and shapes tell.

    Each has prefix, type, settings, weights, and tensors with name, role and shape.
    """
    found: List[Dict[str, Any]] = json.loads(text_from(lib.loom_group_tensors, encoded(path)))
    return found
