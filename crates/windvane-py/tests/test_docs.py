"""The examples in docstrings run and say what they say."""

import doctest
import importlib
import inspect
import pkgutil

import gymnasium
import numpy as np
import pytest

import windvane
from windvane import _core


def documented():
    """Everything of the package that has an example, by its name."""
    found = {}

    def note(name, thing):
        if ">>>" in (getattr(thing, "__doc__", None) or ""):
            found[name] = inspect.getdoc(thing)

    for module in pkgutil.iter_modules(windvane.__path__, "windvane."):
        if module.name in ("windvane.__main__", "windvane.sb3"):
            continue
        there = importlib.import_module(module.name)
        note(module.name, there)
        for name, thing in vars(there).items():
            if callable(thing) and getattr(thing, "__module__", "").startswith("windvane"):
                note(f"{thing.__module__}.{name}", thing)
                for member, inner in vars(thing).items() if inspect.isclass(thing) else ():
                    note(f"{thing.__module__}.{name}.{member}", inner)
    note("windvane", windvane)
    note("windvane.load", windvane.load)
    return found


EXAMPLES = documented()


@pytest.fixture(scope="module")
def place(run, tmp_path_factory):
    """A folder with a run and a data set in it."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "runs").mkdir()
    (folder / "runs" / "x").symlink_to(run)
    windvane.collect("doors", "uniform", episodes=2, contexts=[3, 5], length=60, seed=11, out=folder / "data" / "doors")
    return folder


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_says_what_it_says(name, place, agent, walk, tmp_path, monkeypatch):
    for entry in place.iterdir():
        (tmp_path / entry.name).mkdir()
        for inner in entry.iterdir():
            (tmp_path / entry.name / inner.name).symlink_to(inner)
    monkeypatch.chdir(tmp_path)
    observations, actions = walk
    known = {"windvane": windvane, "gymnasium": gymnasium, "np": np, "agent": agent, "observations": observations}
    known |= {"actions": actions, "data": windvane.Dataset.load("data/doors")}
    known |= {"h": agent.belief(walk), "z": agent.task(goal=[7, 7])}
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], known, name, None, 0)
    assert test.examples
    said = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert result.failed == 0, "".join(said)


def test_every_public_name_is_documented_and_what_matters_has_an_example():
    for name in windvane.__all__:
        thing = getattr(windvane, name)
        assert isinstance(thing, str) or thing.__doc__, name
    shown = {"load", "belief", "task", "act", "q", "session", "backward"}
    assert {f"windvane._core.Agent.{name}" for name in shown} <= set(EXAMPLES)
    for kind in (_core.Agent, _core.Dataset, _core.Session, _core.Belief, _core.Task, _core.Figure):
        for name, member in vars(kind).items():
            assert name.startswith("_") or member.__doc__, f"{kind.__name__}.{name}"
