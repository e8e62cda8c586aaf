"""What several tests share: a small trained run, and the command."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import windvane

#: Seconds of training, not a good agent: what is tested is the way there and back.
SMALL = {"fb.steps": 60, "belief.steps": 60, "data.episodes": 40, "eval.rounds": 1}
SEED = 11


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of Belief-FB on doors."""
    out = tmp_path_factory.mktemp("runs") / "doors"
    windvane.train(
        env="doors", method="bfb", preset="quick", config=SMALL, seed=SEED, out=out, progress=False
    )
    return out


@pytest.fixture(scope="session")
def agent(run: Path) -> windvane.Agent:
    return windvane.load(run)


@pytest.fixture(scope="session")
def walk() -> tuple[np.ndarray, np.ndarray]:
    """A random walk in an unseen layout of doors."""
    data = windvane.collect("doors", "uniform", episodes=1, contexts="test", length=60, seed=SEED)
    return data.observations[:61], data.actions[:60]


@pytest.fixture(scope="session")
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the console script that the wheel brought."""
    script = Path(sysconfig.get_path("scripts")) / "windvane"

    def run_it(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        line = [str(script), *map(str, arguments)]
        return subprocess.run(line, capture_output=True, text=True, timeout=300, **options)  # type: ignore[call-overload,no-any-return]

    return run_it


@pytest.fixture(scope="session")
def python() -> list[str]:
    return [sys.executable]


@pytest.fixture
def minari_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    os.makedirs(tmp_path / "minari")
    return tmp_path / "minari"
