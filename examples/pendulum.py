"""Pendulums of Gymnasium whose mass nobody is told: logged, learned and controlled from Python alone (docs/python.md).

    python examples/pendulum.py [RUN] [--quick]
"""

import sys

RUN = next((word for word in sys.argv[1:] if not word.startswith("--")), "runs/pendulum")
QUICK = "--quick" in sys.argv

# %% logs
import gymnasium
import numpy as np

import windvane


def pendulum(mass):
    env = gymnasium.make("Pendulum-v1", max_episode_steps=100)
    env.unwrapped.m = mass
    return env


rng = np.random.default_rng(10)
masses = rng.uniform(0.5, 1.5, size=30)


def pushes(count):
    """A policy of random torques, each held for a while: what was never tried cannot be learned."""
    torque = np.zeros((count, 1), np.float32)

    def act(obs):
        anew = rng.random(torque.shape) < 0.25
        torque[anew] = rng.uniform(-2, 2, anew.sum())
        return torque.copy()

    return act


names = ["cos", "sin", "speed"]
data = windvane.collect([pendulum(mass) for mass in masses], pushes(len(masses)), episodes=20, dims=names)

# %% training
settings = {"encoder.action_repeat": 3, "fb.gamma": 0.95}
if QUICK:
    settings |= {"belief.steps": 400, "fb.steps": 1200}
agent = windvane.train(dataset=data, method="bfb", config=settings, out=RUN)

# %% control
def share_upright(act, env, seed):
    """The share of the last half of an episode that the rod is upright."""
    obs, _ = env.reset(seed=seed)
    upright = []
    for _ in range(100):
        before, action = obs, act(obs)
        obs, *_ = env.step(action)
        upright.append(obs[0] > 0.9)
    return np.mean(upright[50:])


z = agent.task(reward="cos + 0.0 * speed")
shares = []
for mass in [0.6, 1.0, 1.4]:
    env = pendulum(mass)
    walk = windvane.collect(env, pushes(1), episodes=1, dims=names)
    h = agent.belief((walk.observations, walk.actions))
    with agent.session(h, z) as session:
        for seed in range(5):
            session.restart()
            shares.append(share_upright(session.act, env, seed))
upright = np.mean(shares)
at_random = np.mean([share_upright(lambda obs: rng.uniform(-2, 2, 1).astype(np.float32), pendulum(1.0), s) for s in range(10)])
print(f"upright in the second half of an episode: {upright:.2f} of the time; at random: {at_random:.2f}")
