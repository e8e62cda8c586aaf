"""A new user's first hour (docs/own-data.md): carts of Gymnasium whose masses, lengths and motors nobody is told.

    python own_data.py WINDVANE FOLDER [SETTING ..]

Writes random logs of many carts, imports and trains on them with the binary WINDVANE, adapts to carts it has never seen, and
balances their poles over the line protocol. Then the same Q values are computed from the weights by NumPy alone.
"""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

windvane, folder, settings = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
REWARD = "(abs(angle) < 0.2) * (1 - 0.2 * abs(x))"


def cart(rng, sign):
    """A cart with hidden dynamics. `sign`: some motors are wired the other way round."""
    env = CartPoleEnv()
    env.length = rng.uniform(0.3, 1.0)
    env.masspole = rng.uniform(0.05, 0.3)
    env.masscart = rng.uniform(0.7, 1.5)
    env.total_mass = env.masscart + env.masspole
    env.polemass_length = env.masspole * env.length
    env.force_mag = sign * rng.uniform(6, 12)
    env.theta_threshold_radians = 0.6
    return env


def begin(env, rng, wide):
    env.reset(seed=int(rng.integers(1 << 30)))
    if wide:
        env.state = rng.uniform([-1.5, -1.0, -0.4, -1.0], [1.5, 1.0, 0.4, 1.0])
    return np.array(env.state, np.float32)


def wander(env, rng, steps):
    """Random actions, each kept for a while, until the pole falls."""
    observations, actions, fell = [begin(env, rng, wide=True)], [], False
    action = int(rng.integers(2))
    while len(actions) < steps and not fell:
        action = int(rng.integers(2)) if rng.random() < 0.3 else action
        obs, _, fell, _, _ = env.step(action)
        actions.append(action)
        observations.append(np.array(obs, np.float32))
    return np.array(observations), np.array(actions), fell


def save(path, walks, **more):
    observations, actions, fell = zip(*walks)
    offsets = np.concatenate([[0], np.cumsum([len(a) for a in actions])])
    np.savez(path, observations=np.concatenate(observations), actions=np.concatenate(actions), episode_offsets=offsets,
             terminated=np.array(fell), **more)


def context(env, rng, transitions=40):
    """Short episodes of one cart, so many transitions in all or a few more."""
    walks = []
    while sum(len(actions) for _, actions, _ in walks) < transitions:
        walks.append(wander(env, rng, transitions))
    return walks


def run(*arguments):
    result = subprocess.run([windvane, *map(str, arguments)], check=False, capture_output=True, text=True)
    assert result.returncode == 0, f"{arguments}\n{result.stderr}"
    return result.stdout


class Session:
    """An agent that has seen a context and answers observations, line by line."""

    def __init__(self, *more):
        command = [windvane, "adapt", str(folder / "model"), "--reward", REWARD, "--serve", *map(str, more)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ready = json.loads(self.process.stdout.readline())["ready"]

    def ask(self, obs, **more):
        self.process.stdin.write(json.dumps({"obs": [float(x) for x in obs], **more}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer
        return answer

    def close(self):
        _, said = self.process.communicate()
        assert self.process.returncode == 0, said
        return said


def balance(env, rng, act, steps=200):
    """Steps until the pole falls."""
    obs = begin(env, rng, wide=False)
    for step in range(steps):
        obs, _, fell, _, _ = env.step(act(obs, step == 0))
        if fell:
            return step + 1
    return steps


def train():
    rng = np.random.default_rng(0)
    walks, carts = [], []
    for number in range(100):
        env = cart(rng, [-1, 1][number % 2])
        walks += [walk for walk in (wander(env, rng, 60) for _ in range(40)) if len(walk[1]) > 1]
        carts += [number] * (len(walks) - len(carts))
    save(folder / "logs.npz", walks, cart=np.array(carts))
    run("import", folder / "logs.npz", "--name", "cart", "--dims", "x,speed,angle,spin", "--group-by", "column:cart",
        "--out", folder / "data")
    run("data", "check", folder / "data")
    more = [part for setting in settings for part in ("--set", setting)]
    run("train", "--data", folder / "data", "--method", "rfb", "--out", folder / "run", *more)
    run("export", folder / "run", "--out", folder / "model")


def unseen_carts_are_balanced():
    scores = {"random": [], "right context": [], "context of the other motor": [], "no context, online": []}
    warned = 0
    for number in range(6):
        rng = np.random.default_rng(1000 + number)
        sign = [-1, 1][number % 2]
        env, other = cart(rng, sign), cart(rng, -sign)
        save(folder / "right.npz", context(env, rng))
        save(folder / "wrong.npz", context(other, rng))
        right, wrong = (Session("--context", folder / f"{which}.npz") for which in ("right", "wrong"))
        online = Session("--belief", "online")
        for _ in range(2):
            scores["random"].append(balance(env, rng, lambda obs, first: int(rng.integers(2))))
            for name, session in [("right context", right), ("context of the other motor", wrong), ("no context, online", online)]:
                scores[name].append(balance(env, rng, lambda obs, first: session.ask(obs, reset=first)["action"]))
        warned += "looks like none" in right.close()
        wrong.close()
        online.close()
    means = {name: float(np.mean(steps)) for name, steps in scores.items()}
    print("steps until the pole falls, of 200:", {name: round(mean, 1) for name, mean in means.items()}, "warned", warned)
    assert means["right context"] > 3 * means["random"], means
    assert means["right context"] > 3 * means["context of the other motor"], means
    assert warned <= 3, "most carts like those of the logs are nothing to warn of"


def a_cart_like_no_other_is_warned_of():
    """A cart on a heavy planet with a motor to match."""
    rng = np.random.default_rng(7)
    env = cart(rng, 1)
    env.gravity = 60.0
    env.force_mag = 60.0
    save(folder / "odd.npz", context(env, rng))
    assert "looks like none of the training data" in Session("--context", folder / "odd.npz").close()


def numpy_computes_the_same_values():
    config = json.loads((folder / "model/config.json").read_text())
    data = (folder / "model/model.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, about in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            start, end = about["data_offsets"]
            tensors[name] = np.frombuffer(data[8 + size + start : 8 + size + end], "<f4").reshape(about["shape"]).astype(np.float64)
    erf = np.vectorize(math.erf)

    def mlp(name, *parts):
        """LayerNorm and tanh, then GELU, then a linear output."""
        first = ["w"] if len(parts) == 1 else [f"w{i}" for i in range(len(parts))]
        x = sum(part @ tensors[f"{name}/0/{w}"] for part, w in zip(parts, first)) + tensors[f"{name}/0/b"][0]
        x = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
        x = np.tanh(x * tensors[f"{name}/norm/gain"][0] + tensors[f"{name}/norm/shift"][0])
        layer = 1
        while f"{name}/{layer}/w" in tensors:
            x = x @ tensors[f"{name}/{layer}/w"] + tensors[f"{name}/{layer}/b"][0]
            layer += 1
            if f"{name}/{layer}/w" in tensors:
                x = 0.5 * x * (1 + erf(x / math.sqrt(2)))
        return x

    codec, fb = config["states"]["observations"]["codec"], config["settings"]["fb"]

    def features(obs):
        return np.array([(x - dim["smooth"]["middle"]) * dim["smooth"]["scale"] for x, dim in zip(obs, codec["observations"]["dims"])])

    def values(obs, h, z):
        condition = (h - tensors["conditioner/mean"][0]) * config["conditioner"]["belief"]["scale"]
        task, q = np.concatenate([condition, z]), []
        for action in np.eye(2):
            act = mlp("belief/g/act", np.concatenate([features(obs), action]))
            gain = h @ tensors["belief/g/told/w"] + tensors["belief/g/told/b"][0]
            after = features(obs + mlp("belief/g/trunk", act * gain, act) * np.array(codec["change_scale"]))
            nets = []
            for net in range(fb["ensemble"]):
                left, right = mlp(f"fb/f{net}/left", after), mlp(f"fb/f{net}/right", after, task)
                head = mlp(f"fb/f{net}/trunk", left, right)
                nets.append(head[: len(z)] @ z / len(z) + head[len(z)])  # the value of a head with a skip
            q.append(np.mean(nets))
        return np.array(q)

    session = Session("--context", folder / "right.npz")
    h, z = np.array(session.ready["confidence"]["belief"]), np.array(session.ready["z"])
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(20):
        obs = rng.uniform([-1.5, -1, -0.3, -1], [1.5, 1, 0.3, 1]).astype(np.float32)
        ours = np.array(session.ask(obs, reset=True, values=True)["values"])
        theirs = values(obs.astype(np.float64), h, z)
        worst = max(worst, float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs))))
    session.close()
    print(f"Q values agree to {worst:.1e} of their size")
    assert worst < 1e-5, worst


train()
for test in [unseen_carts_are_balanced, a_cart_like_no_other_is_warned_of, numpy_computes_the_same_values]:
    test()
    print(f"ok {test.__name__}")
