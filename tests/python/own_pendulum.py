"""Own data where context matters (docs/own-data.md): pendulums of hidden mass, length and sign of the motor, in plain NumPy.

    python own_pendulum.py WINDVANE FOLDER [METHOD [UNSEEN [SETTING ..]]]

Writes random logs of many pendulums, imports and trains on them with the binary WINDVANE, and swings up pendulums it has never
seen over the line protocol: told by a log of the right pendulum, of one whose motor turns the other way round, and by nothing at
all, with a belief that goes on learning. Prints one JSON document; `share upright` is over the last third of 15 seconds.
"""

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

windvane, folder = sys.argv[1], Path(sys.argv[2])
method, settings = (sys.argv[3:4] or ["bfb"])[0], sys.argv[5:]
UNSEEN = int((sys.argv[4:5] or [20])[0])  # pendulums of each sign to play with
REWARD = "(cos > 0.9)"
STEPS = 100  # decisions in an episode, one every 0.15 s
PENDULUMS = 40  # to learn from


class Pendulum:
    """The physics of Gymnasium's Pendulum-v1, three frames a decision; the torque is a command between -2 and 2 N m."""

    def __init__(self, rng, sign):
        self.sign, self.mass, self.length = sign, *rng.uniform(0.7, 1.3, 2)

    def begin(self, angle, speed):
        self.angle, self.speed = angle, speed
        return self.see()

    def see(self):
        return np.array([np.cos(self.angle), np.sin(self.angle), self.speed], np.float32)

    def step(self, torque):
        for _ in range(3):
            turn = 15 / self.length * np.sin(self.angle) + 3 * self.sign * torque / (self.mass * self.length**2)
            self.speed = np.clip(self.speed + 0.05 * turn, -8, 8)
            self.angle += 0.05 * self.speed
        return self.see()


def wander(pendulum, rng):
    """Random torques, a third of them as hard as can be, each kept for a while, from anywhere."""
    observations, actions = [pendulum.begin(rng.uniform(-np.pi, np.pi), rng.uniform(-1, 1))], []
    for step in range(STEPS):
        if step == 0 or rng.random() < 0.5:
            torque = rng.uniform(-2, 2) if rng.random() < 0.7 else rng.choice([-2.0, 2.0])
        actions.append([torque])
        observations.append(pendulum.step(torque))
    return np.array(observations), np.array(actions, np.float32)


def save(path, walks, **more):
    observations, actions = zip(*walks)
    offsets = np.arange(len(walks) + 1) * STEPS
    np.savez(path, observations=np.concatenate(observations), actions=np.concatenate(actions), episode_offsets=offsets,
             terminated=np.zeros(len(walks), bool), **more)


def run(*arguments):
    result = subprocess.run([windvane, *map(str, arguments)], check=False, capture_output=True, text=True)
    assert result.returncode == 0, f"{arguments}\n{result.stderr}"
    return result.stdout


class Session:
    """An agent that answers observations, line by line."""

    def __init__(self, *more):
        command = [windvane, "adapt", str(folder / "model"), "--reward", REWARD, "--serve", *map(str, more)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def ask(self, obs, first):
        self.process.stdin.write(json.dumps({"obs": [float(x) for x in obs], "reset": first}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer
        return answer["action"][0]

    def close(self):
        _, said = self.process.communicate()
        assert self.process.returncode == 0, said


def upright(pendulum, rng, session):
    """The share of the last third of an episode, begun hanging, that the rod is within 26 degrees of upright."""
    obs, up = pendulum.begin(np.pi + rng.uniform(-0.1, 0.1), rng.uniform(-0.1, 0.1)), []
    for step in range(STEPS):
        obs = pendulum.step(session.ask(obs, step == 0))
        up.append(obs[0] > 0.9)
    session.close()
    return float(np.mean(up[-(STEPS // 3) :]))


def train(rng):
    pendulums = [Pendulum(rng, [1, -1][number % 2]) for number in range(PENDULUMS)]
    walks = [(number, wander(pendulum, rng)) for number, pendulum in enumerate(pendulums) for _ in range(10)]
    save(folder / "logs.npz", [walk for _, walk in walks], pendulum=np.array([number for number, _ in walks]))
    run("import", folder / "logs.npz", "--name", "pendulum", "--dims", "cos,sin,speed", "--group-by", "column:pendulum",
        "--out", folder / "data")
    run("data", "check", folder / "data")
    more = [part for setting in settings for part in ("--set", setting)]
    run("train", "--data", folder / "data", "--preset", "vectors", "--method", method, "--out", folder / "run", *more)
    run("export", folder / "run", "--out", folder / "model")


def scores(rng):
    shares = {}
    for number in range(2 * UNSEEN):
        sign = [1, -1][number % 2]
        pendulum, other = Pendulum(rng, sign), Pendulum(rng, -sign)
        save(folder / "right.npz", [wander(pendulum, rng)])
        save(folder / "wrong.npz", [wander(other, rng)])
        for told, arguments in [("right", ["--context", folder / "right.npz"]), ("wrong", ["--context", folder / "wrong.npz"]),
                                ("nothing, online", ["--belief", "online"])]:
            shares.setdefault((told, sign), []).append(upright(pendulum, rng, Session(*arguments)))
    return {f"told {told}, sign {sign:+d}": {"upright": round(float(np.mean(s)), 3), "held": round(float(np.mean(np.array(s) >= 0.9)), 3)}
            for (told, sign), s in shares.items()}


folder.mkdir(parents=True, exist_ok=True)
train(np.random.default_rng(0))
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"method": method, "CPU-seconds of import and training": round(used.ru_utime + used.ru_stime, 1),
                  "share upright": scores(np.random.default_rng(1))}, indent=2))
