"""Score rows as a table."""

from __future__ import annotations

import importlib.util
import os
import warnings
from typing import Any

from windvane import _core


def scores(path: str | os.PathLike[str], frame: str | None = None) -> Any:
    """The score rows of a run, a sweep or a `scores.jsonl`, as a DataFrame of polars, else of pandas; `frame` names one.

    >>> sorted(set(windvane.scores("runs/x")["split"]))
    ['test', 'train']
    """
    rows, odd = _core.score_rows(os.fspath(path))
    for words in odd:
        warnings.warn(words, stacklevel=2)
    known = ["polars", "pandas"]
    if frame is not None and frame not in known:
        raise ValueError(f'unknown frame "{frame}"; known: {", ".join(known)}')
    for name in known if frame is None else [frame]:
        if importlib.util.find_spec(name) is None:
            continue
        if name == "polars":
            import polars

            return polars.DataFrame(rows, infer_schema_length=None)
        import pandas

        return pandas.DataFrame(rows)
    raise ImportError(f"scores: needs {' or '.join(known if frame is None else [frame])}; pip install one")
