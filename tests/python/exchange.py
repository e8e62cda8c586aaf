"""Exchanges data with the real NumPy and Minari.

    python exchange.py WINDVANE FOLDER

Runs the binary WINDVANE in FOLDER: its data sets must load in NumPy and Minari with the same numbers, and what NumPy and
Minari write must come back into windvane with the same numbers.
"""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import xxhash

windvane, folder = sys.argv[1], Path(sys.argv[2])
os.environ["MINARI_DATASETS_PATH"] = str(folder / "minari")
import minari  # noqa: E402  (reads the variable above)
from minari.data_collector.episode_buffer import EpisodeBuffer  # noqa: E402

warnings.filterwarnings("ignore", module="minari")


def run(*arguments):
    """Runs a command and returns its JSON document."""
    command = [windvane, *map(str, arguments), "--json"]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, f"{command}\n{result.stderr}"
    return json.loads(result.stdout)


class Native:
    """A windvane data set, read by NumPy alone."""

    def __init__(self, path):
        self.meta = json.loads((path / "meta.json").read_text())
        self.columns = {name: np.load(path / f"{name}.npy", mmap_mode="r") for name in self.meta["columns"]}
        for name, column in self.columns.items():
            about = self.meta["columns"][name]
            assert column.dtype.str == about["dtype"] and list(column.shape) == about["shape"], name
            assert xxhash.xxh3_128(np.ascontiguousarray(column)).hexdigest() == about["xxh3_128"], name
        self.offsets = self.columns["episode_offsets"]

    def __len__(self):
        return len(self.offsets) - 1

    def observations(self, e):
        return self.columns["observations"][self.offsets[e] + e : self.offsets[e + 1] + e + 1]

    def actions(self, e):
        return self.columns["actions"][self.offsets[e] : self.offsets[e + 1]]


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, (a.shape, b.shape)
    assert np.array_equal(a, b)


def collect(env, **settings):
    out = folder / env
    options = [part for name, value in settings.items() for part in (f"--{name}", value)]
    run("collect", "--env", env, "--out", out, *options)
    return out, Native(out)


def numpy_reads_our_folders():
    for env in ["four-rooms", "pointmass"]:
        _, data = collect(env, contexts=3, episodes=4, seed=7)
        assert len(data) == 12
        rows = data.columns["observations"]
        assert len(rows) == data.offsets[-1] + len(data)
        same(data.columns["group_ids"], np.repeat(np.arange(3), 4))


def ogbench_reads_our_archives():
    """The way `ogbench.load_dataset` turns an archive into transitions."""
    for env in ["four-rooms", "pointmass"]:
        path, data = folder / env, Native(folder / env)
        run("data", "export", path, "--format", "npz", "--out", folder / f"{env}.npz")
        with np.load(folder / f"{env}.npz") as file:
            observations, actions, terminals = file["observations"], file["actions"], file["terminals"]
        states = ~terminals.astype(bool)
        nexts = np.concatenate([[False], states[:-1]])
        start = 0
        for e in range(len(data)):
            length = len(data.actions(e))
            same(observations[states][start : start + length], data.observations(e)[:-1])
            same(observations[nexts][start : start + length], data.observations(e)[1:])
            same(actions[states][start : start + length], data.actions(e))
            start += length
        assert start == states.sum() == nexts.sum()


def minari_reads_our_exports():
    for env in ["four-rooms", "pointmass"]:
        path, data = folder / env, Native(folder / env)
        run("data", "export", path, "--format", "minari", "--id", f"windvane/{env}-v0", "--out", folder / "minari")
        dataset = minari.load_dataset(f"windvane/{env}-v0")
        assert dataset.total_episodes == len(data) and dataset.total_steps == data.offsets[-1]
        assert f"windvane/{env}-v0" in minari.list_local_datasets()
        space = gym.spaces.Discrete(4) if env == "four-rooms" else gym.spaces.Box(-1, 1, (2,))
        assert dataset.action_space == space, dataset.action_space
        for e, episode in enumerate(dataset.iterate_episodes()):
            same(episode.observations, data.observations(e))
            same(episode.actions, data.actions(e))
            assert all(step in dataset.observation_space for step in episode.observations)
            assert all(action in dataset.action_space for action in episode.actions)
            assert episode.truncations[-1] and not episode.truncations[:-1].any() and not episode.terminations.any()
        assert e + 1 == len(data)
        options = [m["options"] for m in dataset.storage.get_episode_metadata(range(len(data)))]
        same([o["context"] for o in options], data.columns["context_ids"])


def we_read_what_minari_wrote():
    rng = np.random.default_rng(0)
    spaces = {
        "moves": (gym.spaces.Box(-np.inf, np.inf, (3,), np.float64), gym.spaces.Discrete(3, start=2)),
        "vectors": (gym.spaces.Box(-10, 10, (2, 2), np.float32), gym.spaces.Box(-2, 3, (2,), np.float32)),
        "parts": (
            gym.spaces.Dict({"arm": gym.spaces.Box(-9, 9, (2,)), "button": gym.spaces.Discrete(2)}),
            gym.spaces.Box(-1, 1, (1,), np.float32),
        ),
    }
    for name, (observation_space, action_space) in spaces.items():
        buffers, flat, actions, groups = [], [], [], []
        for e in range(6):
            length = int(rng.integers(1, 30))
            if name == "parts":
                arm = rng.normal(size=(length + 1, 2)).astype(np.float32)
                button = rng.integers(0, 2, length + 1)
                seen = {"arm": arm, "button": button}
                flat.append(np.column_stack([arm, button]).astype(np.float32))
            else:
                seen = rng.uniform(-1, 1, (length + 1, *observation_space.shape)).astype(observation_space.dtype)
                flat.append(seen.reshape(length + 1, -1).astype(np.float32))
            taken = np.array([action_space.sample() for _ in range(length)])
            actions.append(taken)
            groups.append(e % 2)
            done = np.arange(length) == length - 1
            buffers.append(
                EpisodeBuffer(
                    observations=seen,
                    actions=taken,
                    rewards=np.zeros(length),
                    terminations=done & (e == 3),
                    truncations=done & (e != 3),
                    options={"mass": 0.5 + e % 2},
                )
            )
        minari.create_dataset_from_buffers(
            f"lab/{name}-v1", buffers, observation_space=observation_space, action_space=action_space, data_format="arrow"
        )
        source = folder / "minari" / "lab" / f"{name}-v1"
        run("data", "import", source, "--group-by", "column:mass", "--out", folder / f"from-minari-{name}")
        run("data", "check", folder / f"from-minari-{name}")
        data = Native(folder / f"from-minari-{name}")
        order = sorted(range(6), key=lambda e: groups[e])  # those of a group stand together
        start = 2 if name == "moves" else 0
        for ours, theirs in enumerate(order):
            same(data.observations(ours), flat[theirs])
            same(data.actions(ours), actions[theirs] - start)
            assert data.columns["group_ids"][ours] == groups[theirs]
            assert data.columns["terminated"][ours] == (theirs == 3)
        assert "context_ids" not in data.columns
        names = [dim["name"] for dim in data.meta["env"]["observation"]]
        if name == "parts":
            assert names == ["arm[0]", "arm[1]", "button"], names
        if name == "moves":
            assert len(data.meta["env"]["action"]["discrete"]["names"]) == 3
        if name == "vectors":
            assert data.meta["env"]["action"]["continuous"] == {"low": [-2.0, -2.0], "high": [3.0, 3.0]}


def we_read_what_numpy_wrote():
    rng = np.random.default_rng(1)
    logs = []
    for day in range(2):
        lengths = rng.integers(1, 20, 5)
        observations = [rng.normal(size=(length + 1, 4)) for length in lengths]
        actions = [rng.integers(0, 6, length) for length in lengths]
        logs.append((observations, actions))
        save = np.savez if day == 0 else np.savez_compressed
        save(
            folder / f"day{day}.npz",
            observations=np.concatenate(observations),
            actions=np.concatenate(actions).astype(np.int16),
            episode_offsets=np.concatenate([[0], np.cumsum(lengths)]),
        )
    run("data", "import", folder / "day0.npz", folder / "day1.npz", "--name", "arm", "--out", folder / "arm")
    data = Native(folder / "arm")
    for e in range(10):
        same(data.observations(e), logs[e // 5][0][e % 5].astype(np.float32))
        same(data.actions(e), logs[e // 5][1][e % 5])
        assert data.columns["group_ids"][e] == e // 5
    assert data.meta["env"]["name"] == "arm"


for test in [
    numpy_reads_our_folders,
    ogbench_reads_our_archives,
    minari_reads_our_exports,
    we_read_what_minari_wrote,
    we_read_what_numpy_wrote,
]:
    test()
    print(f"ok {test.__name__}")
