"""Stepping speed against peers: MiniGrid, a vectorised NumPy twin, OGBench's point maze.

All contenders run interleaved on one core, with actions drawn beforehand, and are timed by the CPU time of their
process, so that other work on the machine does not matter. Every contender tests for its goal and restarts episodes.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import time
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import gymnasium  # noqa: E402
import minigrid  # noqa: E402, F401  (registers its environments)
import numpy as np  # noqa: E402
import ogbench  # noqa: E402, F401  (registers its environments)

ROOT = Path(__file__).resolve().parents[2]


def windvane(env, envs, steps):
    """Our steps per CPU second, `envs` environments in lockstep."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "release" / "examples" / "step_speed"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    report = subprocess.run([program, env, str(envs), str(steps)], check=True, capture_output=True, text=True)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return json.loads(report.stdout)["steps"] / seconds


def gym(name, steps, **options):
    """A Gymnasium environment without its wrappers, which would only slow it down."""
    env = gymnasium.make(name, **options).unwrapped
    rng = np.random.default_rng(0)
    if isinstance(env.action_space, gymnasium.spaces.Discrete):
        actions = rng.integers(3, size=steps).tolist()  # turn left, turn right, go forward
    else:
        actions = list(rng.uniform(-1, 1, size=(steps, *env.action_space.shape)))
    env.reset(seed=0)
    begin = time.process_time()
    for age, action in enumerate(actions, 1):
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated or age % 250 == 0:
            env.reset()
    return steps / (time.process_time() - begin)


def four_rooms_tables(layouts, rng):
    """Random Four-Rooms layouts: where each move leads, `[layout, cell, action]`, free cells, their number."""
    tables, frees, counts = [], [], []
    for _ in range(layouts):
        free = np.zeros((11, 11), bool)
        free[1:10, 1:10] = True
        column, row = rng.integers(3, 8, size=2)
        free[:, column] = False
        free[row, :] = False
        free[rng.integers(1, row), column] = free[rng.integers(row + 1, 10), column] = True
        free[row, rng.integers(1, column)] = free[row, rng.integers(column + 1, 10)] = True
        flat, cells = free.ravel(), np.arange(121)
        table = np.stack([np.clip(cells + delta, 0, 120) for delta in (1, 11, -1, -11)], axis=1)
        tables.append(np.where(flat[table], table, cells[:, None]))
        frees.append(np.resize(np.flatnonzero(flat), 81))
        counts.append(flat.sum())
    return np.stack(tables).astype(np.int32), np.stack(frees).astype(np.int32), np.array(counts)


def numpy_twin(steps, envs=4096, layouts=30):
    """The same lockstep in vectorised NumPy: lookups, goal test, restarts, observations as float32."""
    rng = np.random.default_rng(0)
    tables, free, counts = four_rooms_tables(layouts, rng)
    layout = np.arange(envs) % layouts
    flat, base, goal = tables.ravel(), layout.astype(np.int32) * (121 * 4), 9 * 11 + 9
    positions = np.stack([np.arange(121) % 11, np.arange(121) // 11], axis=1).astype(np.float32)
    rounds = rng.integers(4, size=(64, envs), dtype=np.int32)
    cell = free[layout, 0]
    # Episodes begin and end at different times, as they do after a while.
    age = rng.integers(100, size=envs, dtype=np.int32)
    obs = np.empty((envs, 2), np.float32)
    begin = time.process_time()
    for turn in range(steps // envs):
        cell = flat[base + cell * 4 + rounds[turn % 64]]
        age += 1
        over = np.flatnonzero((cell == goal) | (age == 100))
        if over.size:
            places = layout[over]
            cell[over] = free[places, (rng.random(over.size) * counts[places]).astype(np.int32)]
            age[over] = 0
        np.take(positions, cell, axis=0, out=obs)
    return steps // envs * envs / (time.process_time() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds; the median of ratios counts")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    contenders = {
        "four-rooms": {
            "windvane": lambda: windvane("four-rooms", 4096, 200_000_000),
            "windvane, 1 at a time": lambda: windvane("four-rooms", 1, 30_000_000),
            "MiniGrid FourRooms": lambda: gym("MiniGrid-FourRooms-v0", 10_000),
            "NumPy twin, 4096 at once": lambda: numpy_twin(20_000_000),
        },
        "pointmass": {
            "windvane": lambda: windvane("pointmass", 4096, 50_000_000),
            "windvane, 1 at a time": lambda: windvane("pointmass", 1, 20_000_000),
            "OGBench pointmaze-medium": lambda: gym("pointmaze-medium-v0", 20_000),
        },
    }
    rates = {env: {name: [] for name in group} for env, group in contenders.items()}
    for _ in range(options.rounds):
        for env, group in contenders.items():
            for name, measure in group.items():
                rates[env][name].append(measure())
    rows = []
    for env, group in rates.items():
        for name, speeds in group.items():
            ratios = [ours / theirs for ours, theirs in zip(group["windvane"], speeds)]
            rows.append(
                {
                    "env": env,
                    "contender": name,
                    "steps_per_cpu_second": statistics.median(speeds),
                    "windvane_is_faster_by": statistics.median(ratios),
                    "lowest_ratio": min(ratios),
                }
            )
    if options.json:
        print(json.dumps({"rounds": options.rounds, "rows": rows}, indent=2))
        return
    print(f"{'env':<12}{'contender':<28}{'steps/CPU-s':>14}{'ratio':>10}{'lowest':>10}")
    for row in rows:
        print(
            f"{row['env']:<12}{row['contender']:<28}{row['steps_per_cpu_second']:>14,.0f}"
            f"{row['windvane_is_faster_by']:>10.1f}{row['lowest_ratio']:>10.1f}"
        )


if __name__ == "__main__":
    main()
