"""What Rust brings; `windvane` shows the part that is for everybody."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str
revision: str

_Path: TypeAlias = str | os.PathLike[str]
#: A pair (observations, actions) with one observation more than actions, a list of pairs, a data set or a file.
Context: TypeAlias = tuple[ArrayLike, ArrayLike] | list[tuple[ArrayLike, ArrayLike]] | Dataset | _Path | None
_Inference: TypeAlias = Literal["projection", "least-squares"]
_Task: TypeAlias = Task | ArrayLike | Sequence[Task]
_Belief: TypeAlias = Belief | Sequence[Belief]

class Dataset:
    """Episodes in columns, memory-mapped. One that has no place of its own yet lives in a temporary folder."""

    @classmethod
    def load(cls, path: _Path) -> Dataset: ...
    @staticmethod
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
        out: _Path | None = None,
    ) -> Dataset: ...
    @staticmethod
    def from_minari(
        id: _Path,
        *,
        group_by: str = "auto",
        dims: list[str] | None = None,
        name: str | None = None,
        out: _Path | None = None,
    ) -> Dataset: ...
    @staticmethod
    def _import(
        sources: Sequence[_Path],
        out: _Path | None = None,
        name: str | None = None,
        dims: list[str] | None = None,
        group_by: str = "auto",
        actions: str = "auto",
    ) -> Dataset: ...
    @staticmethod
    def _collect(
        world: World,
        contexts: list[int],
        policy: str | None,
        sizes: tuple[int, int],
        start: str,
        seed: int,
        out: _Path | None,
    ) -> Dataset: ...
    @staticmethod
    def _write(
        world: World,
        observations: ArrayLike,
        actions: ArrayLike,
        lengths: ArrayLike,
        terminated: list[bool],
        contexts: list[int],
        policy: str,
        seed: int,
        out: _Path | None,
    ) -> Dataset: ...
    def save(self, path: _Path) -> Dataset: ...
    def to_minari(self, id: str, root: _Path | None = None) -> Path: ...
    def to_npz(self, path: _Path) -> None: ...
    def check(self) -> None: ...
    def figure(self, what: Literal["occupancy", "trajectories", "layouts"] = "occupancy") -> Figure: ...
    @property
    def path(self) -> Path: ...
    @property
    def temporary(self) -> bool: ...
    @property
    def env(self) -> str: ...
    @property
    def spec(self) -> dict[str, Any]: ...
    @property
    def meta(self) -> dict[str, Any]: ...
    @property
    def episodes(self) -> int: ...
    @property
    def transitions(self) -> int: ...
    @property
    def groups(self) -> int: ...
    @property
    def observations(self) -> NDArray[np.float32]: ...
    @property
    def actions(self) -> NDArray[Any]: ...
    @property
    def episode_offsets(self) -> NDArray[np.int64]: ...
    @property
    def group_ids(self) -> NDArray[np.int64]: ...
    @property
    def terminated(self) -> NDArray[np.bool_]: ...
    @property
    def privileged_context_ids(self) -> NDArray[np.uint64] | None: ...
    def __len__(self) -> int: ...

class Belief:
    """A belief h about the hidden dynamics."""

    @property
    def mean(self) -> NDArray[np.float32]: ...
    @property
    def std(self) -> NDArray[np.float32]: ...
    @property
    def ood_score(self) -> float | None: ...
    @property
    def p_value(self) -> float | None: ...
    @property
    def relative_std(self) -> float | None: ...
    @property
    def transitions(self) -> int: ...
    @property
    def warning(self) -> str | None: ...

class Task:
    """A task vector z and how it came about."""

    @property
    def z(self) -> NDArray[np.float32]: ...
    @property
    def fit(self) -> float | None: ...
    @property
    def warnings(self) -> list[str]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...

class Agent:
    """A trained agent."""

    @classmethod
    def load(cls, path: _Path) -> Agent: ...
    def belief(self, context: Context = None) -> Belief: ...
    def task(
        self,
        goal: ArrayLike | None = None,
        *,
        reward: str | Callable[[NDArray[np.float32]], ArrayLike] | None = None,
        states: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        inference: _Inference = "projection",
    ) -> Task: ...
    def act(self, obs: ArrayLike, h: _Belief, z: _Task) -> Any: ...
    def q(self, obs: ArrayLike, h: _Belief, z: _Task, actions: ArrayLike | None = None) -> NDArray[np.float32]: ...
    def session(
        self,
        context: Context | Belief = None,
        task: Task | ArrayLike | None = None,
        *,
        online: bool = False,
        planner: Literal["none", "sweeps"] = "none",
    ) -> Session: ...
    def backward(self, obs: ArrayLike) -> NDArray[np.float32]: ...
    @property
    def method(self) -> str: ...
    @property
    def env(self) -> str: ...
    @property
    def dim(self) -> int: ...
    @property
    def spec(self) -> dict[str, Any]: ...

class Session:
    """An agent that knows its context and its task; its belief may go on learning."""

    def act(self, obs: ArrayLike) -> Any: ...
    def observe(self, obs: ArrayLike, action: ArrayLike, next_obs: ArrayLike) -> None: ...
    def values(self, obs: ArrayLike) -> NDArray[np.float32]: ...
    def restart(self) -> None: ...
    def reset(self, context: Context = None) -> None: ...
    def retask(self, task: Task | ArrayLike) -> None: ...
    def close(self) -> None: ...
    @property
    def belief(self) -> Belief: ...
    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Session: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

class Figure:
    """A finished figure, which a notebook shows."""

    @property
    def svg(self) -> str: ...
    def _repr_svg_(self) -> str: ...
    def save(self, path: _Path, scale: float = 2.0) -> None: ...

class World:
    """A family of environments that differ in their hidden dynamics."""

    def __new__(cls, name: str, seed: int = 0, train: int | None = None, test: int | None = None) -> World: ...
    def spec(self) -> dict[str, Any]: ...
    def contexts(self, split: str) -> list[int]: ...
    def tasks(self, context: int) -> list[tuple[str, list[float] | None]]: ...
    def describe(self, context: int) -> dict[str, Any]: ...
    def render(self, context: int, observation: ArrayLike, scale: float = 1.0) -> NDArray[np.uint8]: ...

class Vector:
    """Environments in lockstep."""

    def __new__(
        cls,
        world: World,
        contexts: list[int],
        task: int | str | None,
        start: str,
        limit: int | None,
        autoreset: bool,
    ) -> Vector: ...
    def seed(self, index: int, seed: int) -> None: ...
    def reset(self, which: list[int], obs: NDArray[np.float32]) -> None: ...
    def step(
        self,
        actions: ArrayLike,
        obs: NDArray[np.float32],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        last: NDArray[np.float32],
    ) -> bool: ...

def figure(name: str, path: _Path) -> Figure: ...
def score_rows(path: _Path) -> tuple[list[dict[str, Any]], list[str]]: ...
def train(
    listener: Callable[[str, str, int, int, float, float, dict[str, float]], None],
    *,
    env: str | None,
    data: str | None,
    belief: str | None,
    method: str,
    preset: str,
    config: str | None,
    set: list[str],
    seed: int,
    out: str,
    device: str,
    threads: int,
    scores: bool,
) -> Agent: ...
def worlds() -> list[tuple[str, str]]: ...
def main(arguments: list[str], program: str | None) -> int: ...
def _panic(words: str) -> None: ...
