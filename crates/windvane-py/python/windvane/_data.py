"""Data sets from arrays and Minari, and back."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from windvane._core import Dataset


def from_numpy(
    observations: ArrayLike,
    actions: ArrayLike,
    *,
    next_observations: ArrayLike | None = None,
    episode_offsets: ArrayLike | None = None,
    terminals: ArrayLike | None = None,
    timeouts: ArrayLike | None = None,
    terminated: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    action_low: ArrayLike | None = None,
    action_high: ArrayLike | None = None,
    n_actions: int | None = None,
    dims: list[str] | None = None,
    name: str | None = None,
    out: str | os.PathLike[str] | None = None,
) -> Dataset:
    given = {
        "observations": observations,
        "actions": actions,
        "next_observations": next_observations,
        "episode_offsets": episode_offsets,
        "terminals": terminals,
        "timeouts": timeouts,
        "terminated": terminated,
        "group_ids": groups,
        "action_low": action_low,
        "action_high": action_high,
        "n_actions": None if n_actions is None else [n_actions],
    }
    arrays: dict[str, Any] = {}
    for key, value in given.items():
        if value is None:
            continue
        array = np.ascontiguousarray(value)
        if array.dtype.kind not in "fiub":
            raise ValueError(f"{key}: dtype {array.dtype}, expected numbers")
        arrays[key] = array
    with tempfile.TemporaryDirectory(prefix="windvane-") as folder:
        path = Path(folder) / f"{name or 'own'}.npz"
        np.savez(path, **arrays)
        return Dataset._import([path], out=out, name=name, dims=dims)


def minari_folder() -> Path:
    """Where Minari keeps its data sets."""
    given = os.environ.get("MINARI_DATASETS_PATH")
    return Path(given) if given else Path.home() / ".minari" / "datasets"


def from_minari(
    id: str | os.PathLike[str],
    *,
    group_by: str = "auto",
    dims: list[str] | None = None,
    name: str | None = None,
    out: str | os.PathLike[str] | None = None,
) -> Dataset:
    id = os.fspath(id)
    folder = Path(id) if os.path.isdir(id) else minari_folder() / id
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no Minari data set; download it with `minari download {id}`")
    if (folder / "data" / "main_data.hdf5").is_file():
        return _from_hdf5(id, dims, name, out)
    return Dataset._import([folder], out=out, name=name, dims=dims, group_by=group_by)


def bounds(space: Any) -> tuple[Any, Any]:
    """Bounds of the components of an action, where it has any."""
    if not hasattr(space, "low") or not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        return None, None
    return space.low, space.high


def _from_hdf5(
    id: str, dims: list[str] | None, name: str | None, out: str | os.PathLike[str] | None
) -> Dataset:
    """A data set that only Minari itself can read."""
    import minari

    data = minari.load_dataset(id)
    episodes = list(data.iterate_episodes())
    lengths = [len(episode.actions) for episode in episodes]
    space = data.spec.action_space
    low, high = bounds(space)
    return from_numpy(
        np.concatenate([episode.observations for episode in episodes]),
        np.concatenate([episode.actions for episode in episodes]) - getattr(space, "start", 0),
        episode_offsets=np.concatenate([[0], np.cumsum(lengths)]),
        terminated=np.array([bool(episode.terminations[-1]) for episode in episodes]),
        action_low=low,
        action_high=high,
        n_actions=int(space.n) if hasattr(space, "n") else None,
        dims=dims,
        name=name or id,
        out=out,
    )
