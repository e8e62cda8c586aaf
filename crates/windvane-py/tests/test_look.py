"""Scores as tables, figures, the notebook, types."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import windvane

ROOT = Path(__file__).resolve().parents[3]


def test_scores_are_a_table_of_whichever_is_there(run):
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    frame = windvane.scores(run)
    assert isinstance(frame, polars.DataFrame)
    assert set(frame["split"]) == {"train", "test"} and set(frame["method"]) == {"bfb"}
    assert frame["success"].is_between(0, 1).all()
    other = windvane.scores(run / "scores.jsonl", frame="pandas")
    assert isinstance(other, pandas.DataFrame) and len(other) == len(frame)
    assert other["success"].mean() == pytest.approx(frame["success"].mean())


def test_scores_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        windvane.scores(tmp_path / "nothing")
    with pytest.raises(ValueError, match="no score rows below it"):
        windvane.scores(tmp_path)
    with pytest.raises(ValueError, match="known: polars, pandas"):
        windvane.scores(ROOT / "results" / "doors", frame="excel")


def test_the_rows_of_the_repository_are_read():
    if not (ROOT / "results" / "doors").is_dir():
        pytest.skip("SKIPPED: no results beside the package")
    assert len(windvane.scores(ROOT / "results" / "doors")) > 100


@pytest.mark.parametrize("name", ["qmap", "beliefs", "layouts", "occupancy"])
def test_a_figure_is_svg_that_a_notebook_shows(run, name, tmp_path, command):
    figure = windvane.figure(name, run)
    assert figure._repr_svg_() == figure.svg and figure.svg.startswith("<svg")
    done = command("figure", name, run, "--out", tmp_path / "figure.svg")
    assert done.returncode == 0 and (tmp_path / "figure.svg").read_text() == figure.svg
    figure.save(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_figure_lists_the_known(run, tmp_path, command):
    with pytest.raises(ValueError, match='unknown figure "qmop"; known: .*qmap') as raised:
        windvane.figure("qmop", run)
    said = command("figure", "qmop", run, "--out", tmp_path / "x.svg").stderr
    assert said.removeprefix("error: ").strip() == str(raised.value)


def test_the_notebook_runs_from_nothing_to_its_figures_in_two_cpu_minutes(tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="SKIPPED: no nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel", reason="SKIPPED: no kernel to run notebooks")
    path = ROOT / "examples" / "quickstart.ipynb"
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "stored without outputs"
    notebook.cells.append(nbformat.v4.new_code_cell("import time; print('CPU-seconds', time.process_time())"))
    client = nbclient.NotebookClient(notebook, timeout=400, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    figures = [output["data"]["image/svg+xml"] for output in shown if "image/svg+xml" in output.get("data", {})]
    titles = " ".join(figures)
    assert "Beliefs about hidden dynamics" in titles and "Value of each cell" in titles
    assert not any(output.output_type == "error" for output in shown)
    assert float(shown[-1]["text"].removeprefix("CPU-seconds ")) < 120


def test_types_are_checked():
    pytest.importorskip("mypy", reason="SKIPPED: no mypy")
    package = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=package, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


PROGRAM = """
from pathlib import Path

import numpy as np
import windvane
from numpy.typing import NDArray
from windvane.envs import WindvaneVectorEnv


def control(run: Path, context: tuple[NDArray[np.float32], NDArray[np.int64]]) -> int:
    envs = WindvaneVectorEnv("doors", num_envs=4)
    observations, _ = envs.reset(seed=0)
    agent = windvane.load(run)
    h = agent.belief(context)
    z = agent.task(reward=lambda states: states[:, 0] > 6)
    values: NDArray[np.float32] = agent.q(observations, h, [z, z, z, z])
    with agent.session(context, z, online=True, planner="none") as session:
        action = session.act(observations[0])
        session.observe(observations[0], action, observations[1])
    data = windvane.collect("doors", lambda obs: np.zeros(len(obs), int), episodes=2)
    trained: windvane.Agent = windvane.train(
        dataset=data, method="bfb", config={"fb.steps": 5}, out=run / "again", callback=lambda news: print(news.step)
    )
    windvane.figure("qmap", run).save("qmap.png")
    return len(data) + trained.dim + len(values)
"""


def test_a_users_program_is_checked_by_the_wheels_types(tmp_path):
    pytest.importorskip("mypy", reason="SKIPPED: no mypy")
    wrong = PROGRAM.replace('planner="none"', 'planner="magic"').replace("trained.dim", "trained.dimension")

    def check(program):
        (tmp_path / "program.py").write_text(program)
        line = [sys.executable, "-m", "mypy", "--strict", "program.py"]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)

    done = check(PROGRAM)
    assert done.returncode == 0, done.stdout + done.stderr
    said = check(wrong).stdout
    assert '"Agent" has no attribute "dimension"' in said and 'incompatible type "Literal[\'magic\']"' in said, said


def test_stubs_name_what_the_extension_has():
    from windvane import _core

    stubs = (Path(windvane.__file__).parent / "_core.pyi").read_text()
    assert (Path(windvane.__file__).parent / "py.typed").exists()
    for name in ["Agent", "Belief", "Dataset", "Figure", "Session", "Task", "Vector", "World"]:
        body = re.search(rf"^class {name}:\n(.*?)(?=^class |^def )", stubs, re.M | re.S)
        assert body is not None, name
        named = set(re.findall(r"def (\w+)\(", body[1]))
        there = {key for key in vars(getattr(_core, name)) if not key.startswith("__")}
        assert there == {key for key in named if not key.startswith("__")}, name
        assert getattr(_core, name).__doc__, name
