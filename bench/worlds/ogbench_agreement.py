"""How closely our point follows OGBench's, which MuJoCo moves.

Reads a pointmass data set written by `windvane collect`, builds each of its maps with OGBench's own point model, and
replays the recorded actions there: step by step from our positions, and whole episodes on their own.
"""

import argparse
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import mujoco
import numpy as np
from ogbench.locomaze.point import PointEnv

SIDE, UNIT = 6, 4.0


def open_cells(code):
    """The inner 6x6 cells of a map, from the bits of its context number."""
    return np.array([code >> bit & 1 for bit in range(SIDE * SIDE)], bool).reshape(SIDE, SIDE)


def point_in(code):
    """OGBench's point among the walls of a map, placed as OGBench places them."""
    walls = np.pad(~open_cells(code), 1, constant_values=True)
    tree = ElementTree.parse(PointEnv.xml_file)
    body = tree.find(".//worldbody")
    for row, column in np.argwhere(walls):
        ElementTree.SubElement(
            body,
            "geom",
            type="box",
            pos=f"{column * UNIT - UNIT} {row * UNIT - UNIT} 1",
            size=f"{UNIT / 2} {UNIT / 2} 1",
            contype="1",
            conaffinity="1",
            material="wall",
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "point.xml"
        tree.write(path)
        env = PointEnv(xml_file=str(path))
    env.reset()
    return env


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a pointmass data set")
    parser.add_argument("--episodes", type=int, default=100, help="episodes to replay")
    options = parser.parse_args()
    load = lambda name: np.load(options.data / f"{name}.npy", mmap_mode="r")
    observations, actions = load("observations"), load("actions")
    offsets, codes = load("episode_offsets"), load("context_ids")
    episodes = np.unique(np.linspace(0, len(codes) - 1, options.episodes).astype(int))
    free, touching, drift = [], [], []
    envs = {}
    for episode in episodes:
        begin, end = offsets[episode], offsets[episode + 1]
        ours = observations[begin + episode : end + episode + 1].astype(np.float64)
        code = int(codes[episode])
        if code not in envs:
            envs[code] = point_in(code)
        env = envs[code]
        for at, action, then in zip(ours, actions[begin:end], ours[1:]):
            env.set_xy(at)
            theirs = env.step(action.astype(np.float64))[0]
            error = np.abs(theirs - then).max()
            moved_freely = np.abs(at + 0.2 * action - then).max() < 1e-5
            (free if moved_freely else touching).append(error)
        env.set_xy(ours[0])
        path = [env.step(action.astype(np.float64))[0] for action in actions[begin:end]]
        drift.append(np.linalg.norm(np.array(path) - ours[1:], axis=1))
    free, touching, drift = np.array(free), np.array(touching), np.array(drift)
    print(f"{len(episodes)} episodes in {len(envs)} maps, MuJoCo {mujoco.__version__}, distances in units (cell = 4)")
    print(f"one step in the open:     {len(free):>7} steps, largest difference {free.max():.1e}")
    print(
        f"one step along a wall:    {len(touching):>7} steps, median difference {np.median(touching):.3f}, "
        f"largest {touching.max():.3f}"
    )
    for step in (50, 100, drift.shape[1]):
        now = drift[:, step - 1]
        print(
            f"after {step:>3} steps on its own: median distance {np.median(now):.3f}, "
            f"within 0.1 {np.mean(now < 0.1):.0%}, within 1 (the goal's size) {np.mean(now < 1):.0%}"
        )


if __name__ == "__main__":
    main()
