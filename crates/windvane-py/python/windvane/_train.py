"""Training, with its progress in terminals and notebooks."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from windvane import _core
from windvane._core import Agent, Dataset

#: Seconds until the first plain line, and between two of them.
_FIRST, _BETWEEN = 5.0, 30.0
_WIDTH = 32


@dataclass(frozen=True)
class Progress:
    """How a training goes: what a callback receives."""

    #: "collect", "begin" (a stage begins or goes on), "train" (metrics) or "eval" (scores).
    kind: str
    #: What is being done, for instance "belief".
    stage: str
    step: int
    steps: int
    cpu_seconds: float
    wall_seconds: float
    #: Means of the step's metrics, or scores of an evaluation.
    metrics: dict[str, float]


def train(
    env: str | None = None,
    *,
    dataset: Dataset | str | os.PathLike[str] | None = None,
    method: str = "rfb",
    preset: str = "standard",
    config: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    seed: int = 0,
    out: str | os.PathLike[str],
    belief: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    threads: int = 1,
    scores: bool = True,
    callback: Callable[[Progress], object] | None = None,
    progress: bool = True,
) -> Agent:
    """Train a method in a world, or on a data set of your own, and return the agent.

    It is what `windvane train` does, with the same files in `out`, and goes on where it was stopped. Ctrl-C saves and raises
    `KeyboardInterrupt`; so does what a callback raises. `config` is a TOML file or settings such as `{"fb.kappa": 100}`,
    flat or nested. With `scores`, seen and unseen contexts are played at the end (`windvane.scores(out)`).

    >>> agent = windvane.train(env="four-rooms", method="rfb", preset="quick", out="runs/four-rooms")  # doctest: +SKIP
    >>> data, small = windvane.Dataset.load("data/doors"), {"fb.steps": 5, "belief.steps": 5}
    >>> windvane.train(dataset=data, method="bfb", config=small, out="runs/doors", progress=False)
    Agent(bfb on doors, d=...)
    """
    if env is None and dataset is None:
        raise ValueError("train: expected env or dataset")
    data: str | None = None
    if isinstance(dataset, Dataset):
        # What lives in a temporary folder would leave the run without its data.
        saved = os.path.join(os.fspath(out), "data")
        if dataset.temporary and not os.path.exists(saved):
            dataset.save(saved)
        data = saved if dataset.temporary else os.fspath(dataset.path)
    elif dataset is not None:
        data = os.fspath(dataset)
    settings: list[str] = []
    file = None
    if isinstance(config, Mapping):
        settings = [f"{key}={_toml(value)}" for key, value in _flat(config)]
    elif config is not None:
        file = os.fspath(config)
    shown = _shown() if progress else None

    def listener(
        kind: str, stage: str, step: int, steps: int, cpu: float, wall: float, metrics: dict[str, float]
    ) -> None:
        news = Progress(kind, stage, step, steps, cpu, wall, metrics)
        if shown is not None:
            shown.tell(news)
        if callback is not None:
            callback(news)

    try:
        return _core.train(
            listener,
            env=env,
            data=data,
            belief=None if belief is None else os.fspath(belief),
            method=method,
            preset=preset,
            config=file,
            set=settings,
            seed=seed,
            out=os.fspath(out),
            device=device,
            threads=threads,
            scores=scores,
        )
    finally:
        if shown is not None:
            shown.end()


def _flat(config: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _toml(value: Any) -> str:
    """A value as TOML writes it; for these kinds that is JSON."""
    if hasattr(value, "tolist"):  # NumPy's
        value = value.tolist()
    return json.dumps(value)


class _Lines:
    """A bar that is drawn over itself on a terminal, elsewhere a plain line now and then."""

    def __init__(self, to: TextIO) -> None:
        self.to = to
        self.terminal = to.isatty()
        self.drawn = False
        self.stage = ""
        self.begun = self.next = time.monotonic()

    def tell(self, news: Progress) -> None:
        now = time.monotonic()
        if news.stage != self.stage:
            self.end()
            self.stage, self.begun, self.next = news.stage, now, now + _FIRST
        if self.terminal:
            self.to.write("\r\x1b[2K" + _line(news))
            self.to.flush()
            self.drawn = True
        elif news.kind == "eval" and news.metrics or now >= self.next:
            self.next = now + _BETWEEN
            self.to.write(_line(news) + "\n")
            self.to.flush()

    def end(self) -> None:
        if self.drawn:
            self.to.write("\n")
            self.to.flush()
        self.drawn = False


class _Notebook:
    """One line of a notebook's output that is written anew."""

    def __init__(self) -> None:
        import IPython.display

        display: Any = IPython.display.display
        self.handle = display({"text/plain": "training"}, raw=True, display_id=True)

    def tell(self, news: Progress) -> None:
        self.handle.update({"text/plain": _line(news)}, raw=True)

    def end(self) -> None:
        pass


def _shown() -> _Lines | _Notebook:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and type(shell).__name__ == "ZMQInteractiveShell":
        return _Notebook()
    return _Lines(sys.stderr)


def _line(news: Progress) -> str:
    share = news.step / max(news.steps, 1)
    bar = ("#" * round(share * _WIDTH)).ljust(_WIDTH, ".")
    words = "  ".join(f"{name} {value:.3f}" for name, value in news.metrics.items())
    return f"{bar} {news.step}/{news.steps} {news.stage}  {words}".rstrip()
