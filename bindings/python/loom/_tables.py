"""Tables of pandas, polars and pyarrow, and dicts of columns, as the bytes of a CSV file.

The library reads them as it reads a file, so a table in memory and its file give the same network,
bit for bit. Numbers are written with all their digits.
"""

import csv
import ctypes
import io
import json
import os
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence

from . import _ffi
from ._library import FileBytes, check, encoded, is_bytes, lib, number_of, sized, take_text
from ._options import Options
from .engine import Engine, engine_handle
from .errors import InvalidArgumentError
from .options import TABLE_OPTIONS

if TYPE_CHECKING:
    from .network import Network

# How the text of a table is read.
READING = (
    "classes", "sample_weights", "header", "separator", "decimal", "thousands",
    "encoding",
)  # fmt: skip
# How csv_bytes() writes it: nothing is detected.
AS_WRITTEN: Dict[str, Any] = {
    "header": "yes", "separator": ",", "decimal": ".", "thousands": "none",
}


def is_table(data: Any) -> bool:
    """Whether it is a frame of pandas or polars, or a table of pyarrow."""
    return hasattr(data, "to_csv") or hasattr(data, "write_csv") or _is_arrow(data)


def table_for(network: "Network", data: Any) -> Any:
    """The data as a table, if the network has a plan for one; else None.

    Rows of an array [n, columns] or of lists have the input columns of the plan in their order.
    """
    lists = isinstance(data, (list, tuple)) and bool(data) and isinstance(data[0], (list, tuple))
    is_matrix = lists or getattr(data, "ndim", 0) == 2
    rows = is_table(data) or isinstance(data, (dict, bytes))
    if not (rows or is_matrix) or not network.table:
        return None
    if rows:
        return data
    names = [c["name"] for c in network.table["columns"] if c["role"] == "input"]
    array: Any = data
    widths = {len(row) for row in array} if lists else {array.shape[1]}
    if widths != {len(names)}:
        raise InvalidArgumentError(
            f"an array for this network has {len(names)} columns ({', '.join(names[:8])}), "
            f"not {', '.join(map(str, sorted(widths)))}"
        )
    if lists:
        return {name: [row[i] for row in array] for i, name in enumerate(names)}
    return {name: array[:, i].tolist() for i, name in enumerate(names)}


def _is_arrow(data: Any) -> bool:
    return hasattr(data, "column_names") and hasattr(data, "to_pydict")


def columns_of(data: Any) -> Dict[str, Sequence[Any]]:
    """A dict of columns, whose lengths have to agree."""
    lengths = {name: len(values) for name, values in data.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidArgumentError(f"columns have different lengths: {lengths}")
    return dict(data)


def _cell(value: Any) -> Any:
    try:
        return "" if value is None or value != value else value
    except TypeError:  # pandas.NA
        return ""


def csv_bytes(data: Any) -> bytes:
    """The table as UTF-8 text with a header. A column index of several levels is not one."""
    if hasattr(data, "write_csv"):
        return bytes(data.write_csv().encode())
    if hasattr(data, "to_csv"):
        if any(name is not None for name in data.index.names):
            data = data.reset_index()  # a named index is a column
        return bytes(data.to_csv(index=False).encode())
    columns = columns_of(data.to_pydict() if _is_arrow(data) else data)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(v) for v in row] for row in zip(*columns.values()))
    return out.getvalue().encode()


def with_target(data: Any, y: Any, name: Optional[str]) -> Any:
    """A frame with y as a further column."""
    if y is None:
        return data
    name = name or str(getattr(y, "name", None) or "target")
    if isinstance(data, dict):
        return {**data, name: getattr(y, "tolist", lambda: y)()}
    if hasattr(data, "with_columns"):  # polars
        import polars  # type: ignore[import-not-found,unused-ignore]

        return data.with_columns(polars.Series(name, y))
    if hasattr(data, "assign"):
        return data.assign(**{name: getattr(y, "to_numpy", lambda: y)()})
    raise InvalidArgumentError("a table has its target in a column; leave out y")


def reading_fields(
    *,
    classes: bool,
    sample_weights: str,
    header: str,
    separator: str,
    decimal: str,
    thousands: str,
    encoding: str,
) -> Dict[str, Any]:
    """Fields of loom_dataset_options."""
    return {
        "numbers": not classes,
        "weights": encoded(sample_weights or None),
        "header": number_of(_ffi.HEADER, header, "header"),
        "separator": encoded(separator or None),
        "decimal": encoded(decimal or None),
        "thousands": encoded(thousands or None),
        "encoding": encoded(encoding or None),
    }


def network_for_table(
    data: Any,
    given: Dict[str, Any],
    load: Any,
    engine: Optional[Engine],
) -> "Network":
    """given: TableOptions and READING; load: a loom_load_options."""
    from .network import Network

    plan = {name: given[name] for name in TABLE_OPTIONS}
    reading = {name: given[name] for name in READING}
    if is_table(data) or isinstance(data, dict):
        data, reading = csv_bytes(data), {**reading, **AS_WRITTEN}
    elif not is_bytes(data) and not isinstance(data, (str, os.PathLike)):
        raise TypeError(
            f"a table is a path, bytes of a .csv file, a frame of pandas or polars, a table of "
            f"pyarrow, or a dict of columns, not {type(data).__name__}"
        )
    made, text = ctypes.c_void_p(), ctypes.c_void_p()
    with Options("table", plan) as options:
        how = sized(_ffi.loom_dataset_options, table=options.handle, **reading_fields(**reading))
        last = (ctypes.byref(how), ctypes.byref(load), ctypes.byref(made), ctypes.byref(text))
        on = engine_handle(engine)
        if is_bytes(data):
            file = FileBytes(data, "the table")
            check(lib.loom_network_for_table_memory(on, *file.arguments, *last))
        else:
            check(lib.loom_network_for_table(on, encoded(data), *last))
    told = json.loads(take_text(text))
    network = Network(made.value or 0)
    network.notes = [told["description"], *told["notes"]]
    return network
