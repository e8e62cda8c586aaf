"""Speed of data sets: drawing batches against NumPy over the same memory-mapped files, and collecting.

All contenders run interleaved on one core and are timed by the CPU time of their process, so that other work on the
machine does not matter. Every contender draws its own random numbers and fills the same arrays: state, action, next state.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
WINDOW = 100


def child(*command):
    """CPU seconds and output of a command."""
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime, json.loads(output)


def windvane(data, what, rows, batches):
    """CPU microseconds of a batch; opening the data set is subtracted."""
    program = TARGET / "examples" / "sample_speed"
    opening, _ = child(program, data, what, rows, 1)
    seconds, report = child(program, data, what, rows, batches)
    return 1e6 * (seconds - opening) / (batches - 1), report["own_kib"]


class Columns:
    """The same files, mapped by NumPy. Plain views: indexing a `memmap` object itself is slower still."""

    def __init__(self, path):
        load = lambda name: np.asarray(np.load(path / f"{name}.npy", mmap_mode="r"))  # noqa: E731
        self.observations, self.actions, self.offsets = map(load, ["observations", "actions", "episode_offsets"])
        self.transitions = int(self.offsets[-1])
        # For the contender that keeps the row of every transition in memory.
        episode = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        self.rows = np.arange(self.transitions) + episode
        self.starts = np.concatenate([np.arange(a, b - WINDOW + 1) for a, b in zip(self.offsets, self.offsets[1:])])
        self.rng = np.random.default_rng(0)

    def blind(self, size):
        """Rows at random, whatever episode they belong to: not even right, but the least there is to do."""
        t = self.rng.integers(self.transitions, size=size)
        return self.observations[t], self.actions[t], self.observations[t + 1]

    def searched(self, size):
        t = self.rng.integers(self.transitions, size=size)
        rows = t + np.searchsorted(self.offsets, t, side="right") - 1
        return self.observations[rows], self.actions[t], self.observations[rows + 1]

    def tabled(self, size):
        t = self.rng.integers(self.transitions, size=size)
        rows = self.rows[t]
        return self.observations[rows], self.actions[t], self.observations[rows + 1]

    def windows(self, size):
        t = self.rng.choice(self.starts, size=size)[:, None] + np.arange(WINDOW)
        rows = self.rows[t]
        return self.observations[rows], self.actions[t], self.observations[rows + 1]


def numpy(draw, rows, batches):
    """CPU microseconds of a batch."""
    draw(rows)
    begin = time.process_time()
    for _ in range(batches):
        draw(rows)
    return 1e6 * (time.process_time() - begin) / batches


def sampling(folder, rounds):
    for env in ["four-rooms", "pointmass"]:
        path = folder / env
        columns = Columns(path)
        contests = {
            "1,024 transitions": (
                lambda: windvane(path, "transitions", 1024, 100_000)[0],
                {
                    "NumPy, blind to episodes": lambda: numpy(columns.blind, 1024, 3000),
                    "NumPy, searchsorted": lambda: numpy(columns.searched, 1024, 3000),
                    "NumPy, row table in memory": lambda: numpy(columns.tabled, 1024, 3000),
                },
            ),
            "64 windows of 100": (
                lambda: windvane(path, "windows", 64, 30_000)[0],
                {"NumPy, row table in memory": lambda: numpy(columns.windows, 64, 600)},
            ),
        }
        for name, (ours, peers) in contests.items():
            times = {"windvane": [], **{peer: [] for peer in peers}}
            for _ in range(rounds):
                times["windvane"].append(ours())
                for peer, contend in peers.items():
                    times[peer].append(contend())
            print(f"{env}, {name}: windvane {statistics.median(times['windvane']):.1f} us")
            for peer in peers:
                ratios = [theirs / own for theirs, own in zip(times[peer], times["windvane"])]
                median = statistics.median(times[peer])
                print(f"  {peer} {median:.1f} us, ratio {statistics.median(ratios):.1f}, lowest {min(ratios):.1f}")


def memory(folder):
    for episodes in [250, 2500]:
        path = folder / f"memory-{episodes}"
        settings = ["--episodes", episodes, "--out", path]
        _, report = child(TARGET / "windvane", "collect", "--env", "four-rooms", *settings, "--json")
        _, own = windvane(path, "transitions", 1024, 2000)
        print(f"{report['summary']['transitions']:,} transitions: {own} KiB of own memory while sampling")


def collecting(folder, rounds):
    for env, contexts, episodes in [("four-rooms", 40, 250), ("doors", 20, 500), ("pointmass", 40, 100)]:
        seconds = []
        for number in range(rounds):
            out = folder / f"collect-{env}-{number}"
            used, report = child(
                TARGET / "windvane", "collect", "--env", env, "--contexts", contexts, "--episodes", episodes, "--out", out, "--json"
            )
            assert report["summary"]["transitions"] == 1_000_000, report
            seconds.append(used)
        print(f"{env}: 1,000,000 transitions in {statistics.median(seconds):.2f} CPU seconds, highest {max(seconds):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    # One core for everyone, so that caches and clock are the same.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for env, contexts, episodes in [("four-rooms", 40, 250), ("pointmass", 40, 100)]:
            settings = ["--contexts", contexts, "--episodes", episodes, "--out", folder / env]
            child(TARGET / "windvane", "collect", "--env", env, *settings, "--json")
        sampling(folder, rounds)
        memory(folder)
        collecting(folder, rounds)
