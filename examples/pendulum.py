"""Pendulums of Gymnasium whose mass nobody is told: logged, learned and controlled from Python alone (docs/python.md).

    python examples/pendulum.py [RUN]
"""

import sys

run = sys.argv[1] if len(sys.argv) > 1 else "runs/pendulum"

# %% logs
import gymnasium
import numpy as np

import windvane


class Torques(gymnasium.ActionWrapper):
    """Three moves: full torque one way, none, the other way."""

    action_space = gymnasium.spaces.Discrete(3)

    def action(self, action):
        return np.array([2.0 * (action - 1)], np.float32)


def pendulum(mass):
    env = gymnasium.make("Pendulum-v1", max_episode_steps=150)
    env.unwrapped.m = mass
    return Torques(env)


rng = np.random.default_rng(10)
masses = rng.uniform(0.5, 1.5, size=40)


def pushes(count):
    """Random moves, each held for a while: what was never tried cannot be learned."""
    move = np.ones(count, int)

    def act(observations):
        anew = rng.random(count) < 0.3
        move[anew] = rng.integers(3, size=anew.sum())
        return move.copy()

    return act


names = ["cos", "sin", "speed"]
data = windvane.collect([pendulum(m) for m in masses], pushes(40), episodes=15, length=100, dims=names)

# %% training
settings = {"encoder.action_repeat": 3, "fb.gamma": 0.95, "belief.steps": 300, "fb.steps": 800}
agent = windvane.train(dataset=data, method="bfb", config=settings, out=run)

# %% control
z = agent.task(reward="cos > 0.9")


def share_upright(env, act):
    """The share of the last third of an episode that the rod is upright; it begins hanging."""
    env.reset(seed=0)
    env.unwrapped.state = np.array([np.pi, 0.0])
    obs = np.array([-1.0, 0.0, 0.0], np.float32)
    upright = []
    for _ in range(150):
        obs, *_ = env.step(act(obs))
        upright.append(obs[0] > 0.9)
    return np.mean(upright[100:])


shares = []
for mass in [0.55, 0.9, 1.1, 1.45]:  # none of those that were logged
    env = pendulum(mass)
    trajectory = windvane.collect(env, pushes(1), episodes=1, length=100, dims=names)
    h = agent.belief((trajectory.observations, trajectory.actions))
    with agent.session(h, z) as session:
        shares.append(share_upright(env, session.act))
print(f"upright in the last third of the episode: {np.mean(shares):.2f} of the time, by mass {np.round(shares, 2)}")

# %% the end
at_random = np.mean([share_upright(pendulum(mass), lambda obs: rng.integers(3)) for mass in masses[:10]])
upright = np.mean(shares)
print(f"at random: {at_random:.2f}")
