"""Training from Python: the same files, progress, and what stops it."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import SEED, SMALL

import windvane
from windvane._train import _Lines


#: What tells the time, and is never the same twice: logs, and the times beside a checkpoint.
TIMED = (".times.json", ".jsonl", ".tensorboard")


def untimed(run):
    """The bytes of all files of a run that have no time in them, by their names."""
    files = (path for path in run.rglob("*") if path.is_file())
    named = {path.relative_to(run).as_posix(): path.read_bytes() for path in files}
    return {name: data for name, data in named.items() if not any(word in name for word in TIMED)}


def rows(run):
    rows = [json.loads(line) for line in (run / "scores.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if not key.endswith("_seconds")} for row in rows]


def test_the_run_is_the_commands_to_the_byte(run, tmp_path, command):
    out = tmp_path / "doors"
    settings = [f"--set={key}={value}" for key, value in SMALL.items()]
    done = command("train", "--env=doors", "--method=bfb", "--preset=quick", f"--seed={SEED}", "--out", out, *settings)
    assert done.returncode == 0, done.stderr
    files = untimed(run)
    assert {"agent.safetensors", "belief.safetensors", "run.json", "data/observations.npy"} <= files.keys()
    assert {"model/model.safetensors", "model/config.json", "model/README.md"} <= files.keys()
    assert files == untimed(out)
    assert rows(run) == rows(out)


def test_a_run_on_a_data_set_is_the_commands_to_the_byte(tmp_path, command):
    contexts = windvane._core.World("pendulum", SEED).contexts("train")[:4]
    data = windvane.collect("pendulum", "uniform", episodes=2, contexts=contexts, length=30, seed=SEED, out=tmp_path / "data")
    small = {"fb.steps": 5, "belief.steps": 5, "features.steps": 5, "belief.min_context": 5}
    for method in ("rfb", "hilp"):
        ours, theirs = tmp_path / method, tmp_path / f"{method}-command"
        windvane.train(dataset=data, method=method, config=small, seed=SEED, out=ours, progress=False)
        settings = [f"--set={key}={value}" for key, value in small.items()]
        done = command("train", "--data", data.path, f"--method={method}", f"--seed={SEED}", "--out", theirs, *settings)
        assert done.returncode == 0, done.stderr
        files = untimed(ours)
        learned = "belief.safetensors" if method == "rfb" else "features.safetensors"
        assert {"agent.safetensors", learned, "model/model.safetensors"} <= files.keys()
        assert files == untimed(theirs)


def test_a_callback_hears_of_every_stage_and_training_goes_on_where_it_was(tmp_path):
    out, heard = tmp_path / "run", []

    def stop(news):
        heard.append(news)
        if news.stage.startswith("belief") and news.step >= 20:
            raise TimeoutError("enough")

    settings = dict(env="doors", method="bfb", preset="quick", config=SMALL, seed=SEED, out=out, progress=False)
    with pytest.raises(TimeoutError, match="enough"):
        windvane.train(**settings, callback=stop)
    assert {"collect", "begin", "train"} <= {news.kind for news in heard}
    assert not (out / "model").exists() and (out / "belief.safetensors").exists()
    later = []
    agent = windvane.train(**settings, callback=later.append, scores=False)
    first = next(news for news in later if news.kind == "begin")
    assert first.step >= 20, "it went on from there"
    assert agent.method == "bfb" and not (out / "scores.jsonl").exists()
    assert any(news.kind == "eval" and "train success" in news.metrics for news in later)


def test_nested_settings_are_the_flat_ones(tmp_path):
    nested = {"fb": {"steps": 60}, "belief": {"steps": 60}, "data": {"episodes": 40}, "eval": {"rounds": 1}}
    windvane.train(env="doors", method="fb", preset="quick", config=nested, out=tmp_path / "a", scores=False)
    windvane.train(env="doors", method="fb", preset="quick", config=SMALL, out=tmp_path / "b", scores=False)
    model = "model/model.safetensors"
    assert (tmp_path / "a" / model).read_bytes() == (tmp_path / "b" / model).read_bytes()


def test_other_threads_run_while_it_trains(tmp_path):
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.monotonic()
    windvane.train(env="doors", method="bfb", preset="quick", config=SMALL, seed=SEED + 1, out=tmp_path, scores=False)
    spent = time.monotonic() - begun
    stop.set()
    thread.join()
    assert max(np.diff(ticks)) < max(0.5, spent / 4), "nobody held the interpreter for long"


SCRIPT = """
import sys, windvane
try:
    windvane.train(env="doors", method="bfb", preset="quick", config={"fb.steps": 4000, "belief.steps": 20, "data.episodes": 20}, out=sys.argv[1])
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
"""


@pytest.mark.skipif(os.name != "posix", reason="SKIPPED: signals of Unix")
def test_ctrl_c_saves_and_raises(tmp_path):
    out = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(out)], stdout=subprocess.PIPE, text=True)
    try:
        wait_for(out / "agent.jsonl", process)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, said.strip()) == (7, "interrupted")
    assert (out / "agent.safetensors").exists() and not (out / "model").exists()


@pytest.mark.skipif(os.name != "posix", reason="SKIPPED: signals of Unix")
def test_the_command_takes_ctrl_c_as_the_program_does(tmp_path):
    import sysconfig

    out = tmp_path / "run"
    line = [os.path.join(sysconfig.get_path("scripts"), "windvane"), "train", "--env", "doors", "--method", "bfb"]
    line += ["--preset", "quick", "--set", "fb.steps=4000", "--set", "belief.steps=20"]
    line += ["--set", "data.episodes=20", "--out", str(out)]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(out / "agent.jsonl", process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "stopped and saved" in said and (out / "agent.safetensors").exists()


def wait_for(path, process):
    until = time.monotonic() + 180
    while not (path.exists() and path.stat().st_size > 0):
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.05)


def test_a_data_set_alone_is_enough(tmp_path):
    rng = np.random.default_rng(0)
    data = windvane.collect("doors", lambda obs: rng.integers(4, size=len(obs)), episodes=4, length=30, seed=11)
    assert data.temporary
    small = {"fb.steps": 20, "belief.steps": 20}
    agent = windvane.train(dataset=data, method="bfb", config=small, out=tmp_path / "own", progress=False)
    assert (tmp_path / "own" / "data" / "meta.json").exists(), "a temporary data set is saved with the run"
    h, z = agent.belief((data.observations[:31], data.actions[:30])), agent.task(reward="x > 4")
    assert agent.act(data.observations[:5], h, z).shape == (5,)
    again = windvane.train(dataset=data, method="bfb", config=small, out=tmp_path / "own", progress=False)
    np.testing.assert_array_equal(again.backward([[1, 1]]), agent.backward([[1, 1]]))


@pytest.mark.parametrize(
    "given, command_line",
    [
        ({"env": "four-roms"}, ["--env", "four-roms"]),
        ({"env": "doors", "method": "rbf"}, ["--env", "doors", "--method", "rbf"]),
        ({"env": "doors", "preset": "fast"}, ["--env", "doors", "--preset", "fast"]),
        ({"env": "doors", "config": {"fb.kapa": 3}}, ["--env", "doors", "--set", "fb.kapa=3"]),
        ({"env": "doors", "config": {"fb.gamma": 2.0}}, ["--env", "doors", "--set", "fb.gamma=2.0"]),
        ({"env": "doors", "config": "no.toml"}, ["--env", "doors", "--config", "no.toml"]),
        ({"dataset": "nowhere"}, ["--data", "nowhere"]),
        ({"env": "doors", "device": "cuda"}, ["--env", "doors", "--device", "cuda"]),
    ],
)
def test_errors_have_the_words_of_the_command(given, command_line, tmp_path, command):
    with pytest.raises((ValueError, FileNotFoundError)) as raised:
        windvane.train(**({"method": "bfb"} | given), out=tmp_path / "python", progress=False)
    line = command_line if "--method" in command_line else [*command_line, "--method", "bfb"]
    done = command("train", *line, "--out", tmp_path / "command")
    assert done.returncode == 1
    assert done.stderr.removeprefix("error: ").strip() == str(raised.value).strip()
    missing = given.get("config") == "no.toml" or given.get("dataset") == "nowhere"
    assert raised.type is (FileNotFoundError if missing else ValueError)


def test_progress_is_plain_lines_where_there_is_no_terminal(tmp_path, capfd):
    windvane.train(env="doors", method="bfb", preset="quick", config=SMALL, seed=SEED, out=tmp_path, scores=False)
    said = capfd.readouterr()
    assert said.out == "" and "train success" in said.err and "\r" not in said.err


def test_progress_is_one_line_drawn_anew_on_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    bar = _Lines(shown)
    for step in (1, 2):
        bar.tell(windvane.Progress("train", "belief", step, 2, 0.1, 0.1, {"loss": 0.5}))
    bar.end()
    lines = shown.getvalue().split("\r")
    assert lines[-1].endswith("#" * 32 + " 2/2 belief  loss 0.500\n") and len(lines) == 3
