"""Stepping speed of the ant against Gymnasium's Ant-v5 vector environment, by turns on one core, by CPU time.

    python ant.py [ROUNDS]

Both step eight healthy ants in still air at random, with contact forces, rewards and restarts.
"""

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
STEPS = 20_000
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def windvane():
    program = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples" / "ant_speed"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([program, str(STEPS)], check=True, capture_output=True)
    return STEPS / (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)


envs = gym.make_vec("Ant-v5", num_envs=8, vectorization_mode="sync")
actions = np.random.default_rng(0).uniform(-1, 1, (STEPS // 8, 8, 8)).astype(np.float32)
envs.reset(seed=0)


def gymnasium():
    before = time.process_time()
    for action in actions:
        envs.step(action)
    return STEPS / (time.process_time() - before)


rows = [(windvane(), gymnasium()) for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)]
ratios = [ours / theirs for ours, theirs in rows]
ours, theirs = (statistics.median(column) for column in zip(*rows))
print(f"windvane {ours:,.0f} steps/CPU-s, Gymnasium {theirs:,.0f}; faster by {statistics.median(ratios):.2f}, lowest {min(ratios):.2f}")
