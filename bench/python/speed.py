"""The wheel against its peers, by turns in one process, by CPU time.

    python bench/python/speed.py [ROUNDS]

Wants the wheel, minigrid and torch. Everyone has one thread; numbers are medians over rounds, ratios are taken within a round.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import statistics
import sys
import tempfile
import time
from pathlib import Path

import gymnasium
import minigrid
import numpy as np
import torch

import windvane

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "crates" / "windvane-py" / "tests"))
from torch_agent import Agent as TorchAgent

ENVS = 256
BATCH = 1024
torch.set_num_threads(1)


def per_call(work, calls):
    """CPU seconds of one call."""
    begun = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - begun) / calls


def stepping():
    ours = gymnasium.make_vec("windvane/FourRooms-v0", num_envs=ENVS)
    theirs = gymnasium.make_vec("MiniGrid-FourRooms-v0", num_envs=ENVS, vectorization_mode="sync")
    contenders = {}
    for name, envs, calls in [("Windvane", ours, 2000), ("MiniGrid", theirs, 5)]:
        envs.reset(seed=0)
        actions = [envs.action_space.sample() for _ in range(64)]
        turn = iter(range(10**9))
        contenders[name] = (lambda e=envs, a=actions, t=turn: e.step(a[next(t) % 64]), calls)
    return contenders


def trained(folder, name, data, **settings):
    out = Path(folder) / name
    return windvane.train(dataset=data, method="rfb", config=settings, out=out, progress=False), out / "model"


def acting(folder):
    """Agents of three kinds, hardly trained: how good they are does not change how fast they are."""
    rng = np.random.default_rng(0)
    few = {"fb.steps": 10, "belief.steps": 10, "belief.min_context": 5}
    carts = [gymnasium.make("CartPole-v1") for _ in range(4)]
    carts = windvane.collect(carts, lambda obs: rng.integers(2, size=len(obs)), episodes=8)
    rods = [gymnasium.make("Pendulum-v1", max_episode_steps=40) for _ in range(4)]
    rods = windvane.collect(rods, lambda obs: rng.uniform(-2, 2, (len(obs), 1)).astype(np.float32), episodes=4)
    agents = {}
    grid = windvane.train(env="four-rooms", preset="quick", method="bfb", config={"fb.steps": 1, "belief.steps": 1},
                          out=Path(folder) / "grid", scores=False, progress=False)
    walk = windvane.collect("four-rooms", "uniform", episodes=1, contexts=[17])
    agents["moves on a grid (listed states)"] = (grid, None, walk, None)
    agents["moves on observations (cart-pole)"] = (*trained(folder, "carts", carts, **few), carts, 2)
    agents["vectors (pendulum, FiLM actor)"] = (*trained(folder, "rods", rods, **few), rods, None)
    pair = few | {"fb.forward": "paper", "fb.net.kind": "pair"}
    agents["vectors (pendulum, the paper's actor)"] = (*trained(folder, "pair", rods, **pair), rods, None)
    return agents


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(f"windvane {windvane.__version__}, minigrid {minigrid.__version__}, torch {torch.__version__}, "
          f"gymnasium {gymnasium.__version__}; {rounds} rounds")
    contenders = stepping()
    times = [{name: per_call(*how) for name, how in contenders.items()} for _ in range(rounds)]
    for name in contenders:
        median = statistics.median(row[name] for row in times)
        print(f"{name}, {ENVS} environments: {1e6 * median:10.1f} us a step, {ENVS / median:12,.0f} steps a second")
    ratios = [row["MiniGrid"] / row["Windvane"] for row in times]
    print(f"  faster by {statistics.median(ratios):.0f} (lowest round {min(ratios):.0f})")
    with tempfile.TemporaryDirectory() as folder:
        for name, (agent, model, data, n_actions) in acting(folder).items():
            length = int(data.episode_offsets[1])
            h = agent.belief((data.observations[: length + 1], data.actions[:length]))
            z = agent.task(goal=data.observations[3])
            one = data.observations[7].copy()
            batch = np.resize(data.observations, (BATCH, data.observations.shape[1])).astype(np.float32)
            row = {"act": (lambda: agent.act(one, h, z), 2000), "session": (None, 0), "batch": (lambda: agent.act(batch, h, z), 50)}
            session = agent.session(h, z)
            row["session"] = (lambda: session.act(one), 2000)
            if model is not None:
                twin, rows, mean = TorchAgent(model), torch.from_numpy(batch), h.mean
                theirs = (lambda: twin.q(rows, mean, z.z, n_actions).argmax(1)) if n_actions else (lambda: twin.act(rows, mean, z.z))
                row["torch"] = (theirs, 50)
            times = [{key: per_call(*how) for key, how in row.items()} for _ in range(rounds)]
            middle = {key: 1e6 * statistics.median(t[key] for t in times) for key in row}
            least = 1e6 * min(t["act"] for t in times)
            line = f"{name}: act {middle['act']:.1f} us (fastest round {least:.1f}), session.act {middle['session']:.1f} us, "
            line += f"act on {BATCH} {middle['batch']:.0f} us"
            if "torch" in row:
                ratios = [t["torch"] / t["batch"] for t in times]
                line += f"; PyTorch {middle['torch']:.0f} us, {statistics.median(ratios):.2f} times ours (lowest round {min(ratios):.2f})"
            print(line)


if __name__ == "__main__":
    main()
