"""Lets Gymnasium's Ant-v5 walk a thousand random steps and writes down what it saw.

    python ant.py FILE

FILE gets 64-bit numbers: positions and velocities at the start, then for each step 8 torques, 105 observations, the reward.
"""

import sys

import gymnasium as gym
import numpy as np

env = gym.make("Ant-v5", terminate_when_unhealthy=False, max_episode_steps=2000)
env.reset(seed=0)
ant = env.unwrapped
rng = np.random.default_rng(0)
rows = [np.concatenate([ant.data.qpos, ant.data.qvel])]
for _ in range(1000):
    torques = rng.uniform(-1, 1, 8).astype(np.float32)
    observation, reward, *_ = env.step(torques)
    rows.append(np.concatenate([torques, observation, [reward]]))
np.concatenate(rows).astype("<f8").tofile(sys.argv[1])
