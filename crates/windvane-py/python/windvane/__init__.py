"""Behavioural foundation models that sense hidden dynamics and act zero-shot.

>>> import windvane
>>> agent = windvane.load("runs/x")
>>> h = agent.belief((observations, actions))
>>> z = agent.task(goal=[7, 7])
>>> action = agent.act([1, 1], h, z)
"""

import importlib.util
import os
import sys
import warnings

from windvane._collect import collect
from windvane._core import Agent, Belief, Dataset, Figure, Session, Task, __version__, figure, revision
from windvane._look import scores
from windvane._train import Progress, train

__all__ = [
    "Agent",
    "Belief",
    "Dataset",
    "Figure",
    "Progress",
    "Session",
    "Task",
    "__version__",
    "collect",
    "figure",
    "load",
    "revision",
    "scores",
    "train",
]


def load(path: "str | os.PathLike[str]") -> Agent:
    """Read an agent from its folder (`windvane export`), or from the folder of a finished run.

    >>> windvane.load("runs/x").env
    'doors'
    """
    return Agent.load(path)


# The command `windvane` has no use for Gymnasium, starts faster without, and must be the only one to hear Ctrl-C, which threads
# that NumPy starts would take.
_started = sys.argv[0] if sys.argv else ""
_is_command = _started == "-m" or os.path.splitext(os.path.basename(_started))[0] == "windvane"
if not _is_command and importlib.util.find_spec("gymnasium") is not None:
    try:
        from windvane.envs import register
    except ImportError as error:
        warnings.warn(f"no windvane environments: they need gymnasium 1.1 or newer ({error})", stacklevel=2)
    else:
        register()
