"""The real programs that a user would bring: Stable-Baselines3, Minari, PyTorch, Gymnasium's own environments."""

import runpy
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import windvane

ROOT = Path(__file__).resolve().parents[3]


def test_stable_baselines3_trains_ppo_on_our_vector_environment():
    pytest.importorskip("stable_baselines3", reason="SKIPPED: no Stable-Baselines3 to be had")
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecMonitor

    from windvane.sb3 import SB3VecEnv

    torch.set_num_threads(1)
    envs = VecMonitor(SB3VecEnv(gymnasium.make_vec("windvane/RandomizedDoors-v0", num_envs=64, context=17)))
    model = PPO("MlpPolicy", envs, n_steps=32, batch_size=256, n_epochs=6, seed=0, learning_rate=2e-3, gamma=0.95)
    lengths = []

    def note(locals_, _):
        lengths.extend(info["episode"]["l"] for info in locals_["infos"] if "episode" in info)
        return True

    model.learn(24_000, callback=note)
    early, late = np.mean(lengths[:60]), np.mean(lengths[-60:])
    assert late < early - 5, f"the way to the goal took {early} steps at first, {late} at last"


def test_minari_loads_what_we_wrote_and_we_load_what_it_wrote(minari_root):
    minari = pytest.importorskip("minari", reason="SKIPPED: no Minari to be had")
    data = windvane.collect("four-rooms", "uniform", episodes=2, contexts="test", length=15, seed=11)
    data.to_minari("windvane/four-rooms-v0")
    theirs = minari.load_dataset("windvane/four-rooms-v0")
    assert (theirs.total_episodes, theirs.total_steps) == (data.episodes, data.transitions)
    for number, episode in enumerate(theirs.iterate_episodes()):
        first, last = data.episode_offsets[number : number + 2]
        np.testing.assert_array_equal(episode.observations, data.observations[first + number : last + number + 1])
        np.testing.assert_array_equal(episode.actions, data.actions[first:last])
    back = windvane.Dataset.from_minari("windvane/four-rooms-v0")
    np.testing.assert_array_equal(back.observations, data.observations)
    assert back.meta["columns"] == data.meta["columns"] and back.spec == data.spec


@pytest.mark.parametrize("kind", ["arrow", "hdf5"])
def test_we_load_what_minari_recorded_of_gymnasium(minari_root, kind):
    minari = pytest.importorskip("minari", reason="SKIPPED: no Minari to be had")
    if kind == "hdf5":
        pytest.importorskip("h5py", reason="SKIPPED: no h5py to be had")
    from minari.data_collector.episode_buffer import EpisodeBuffer

    env = gymnasium.make("Pendulum-v1", max_episode_steps=30)
    env.action_space.seed(0)
    buffers = []
    for episode in range(4):
        seen, taken, over = [env.reset(seed=episode)[0]], [], False
        while not over:
            taken.append(env.action_space.sample())
            obs, _, terminated, truncated, _ = env.step(taken[-1])
            seen.append(obs)
            over = terminated or truncated
        ends = [False] * 29
        flags = {"rewards": [0.0] * 30, "terminations": [False] * 30, "truncations": [*ends, True]}
        buffers.append(EpisodeBuffer(observations=np.stack(seen), actions=np.stack(taken), **flags))
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    minari.create_dataset_from_buffers(f"test/pendulum-{kind}-v0", buffers, data_format=kind, **spaces)
    data = windvane.Dataset.from_minari(f"test/pendulum-{kind}-v0", name="pendulum")
    assert (data.episodes, data.transitions) == (4, 120)
    np.testing.assert_array_equal(data.observations, np.concatenate([b.observations for b in buffers]))
    np.testing.assert_array_equal(data.actions, np.concatenate([b.actions for b in buffers]))
    assert data.spec["action"]["continuous"] == {"low": [-2.0], "high": [2.0]}


SMALL = {"fb.steps": 40, "belief.steps": 40, "belief.min_context": 5}


def own_data(discrete: bool) -> windvane.Dataset:
    rng = np.random.default_rng(1)
    if discrete:
        envs = [gymnasium.make("CartPole-v1") for _ in range(6)]
        return windvane.collect(envs, lambda obs: rng.integers(2, size=len(obs)), episodes=6, seed=11)
    envs = [gymnasium.make("Pendulum-v1", g=g, max_episode_steps=40) for g in (5, 8, 10, 12, 15, 18)]
    return windvane.collect(envs, lambda obs: rng.uniform(-2, 2, (len(obs), 1)).astype(np.float32), episodes=4, seed=11)


@pytest.mark.parametrize(
    "discrete, method, settings",
    [
        (True, "rfb", {}),
        (True, "fb", {}),
        (True, "bfb", {"fb.forward": "paper", "fb.value_head": "log"}),
        (True, "bfb", {"encoder.fourier": 16, "fb.ensemble": 2, "fb.value_head": "linear"}),
        (False, "rfb", {}),
        (False, "bfb", {"fb.forward": "paper", "fb.net.kind": "pair"}),
    ],
)
def test_pytorch_computes_the_same_q_from_the_exported_files(discrete, method, settings, tmp_path, command):
    torch = pytest.importorskip("torch", reason="SKIPPED: no PyTorch to be had")
    pytest.importorskip("safetensors", reason="SKIPPED: no safetensors to be had")
    from torch_agent import Agent

    data = own_data(discrete)
    ours = windvane.train(dataset=data, method=method, config=SMALL | settings, out=tmp_path / "run", progress=False)
    done = command("export", tmp_path / "run", "--out", tmp_path / "model")
    assert done.returncode == 0, done.stderr
    theirs = Agent(tmp_path / "model")
    length = int(data.episode_offsets[1])
    h = ours.belief((data.observations[: length + 1], data.actions[:length]))
    goal = data.observations[40]
    for z in (ours.task(goal=goal), ours.task(goal=-goal)):
        obs = data.observations[:256]
        rows = torch.from_numpy(obs.copy())
        if discrete:
            expected = theirs.q(rows, h.mean, z.z, 2).numpy()
            np.testing.assert_allclose(ours.q(obs, h, z), expected, atol=1e-5)
            single = np.stack([ours.session(h, z).values(o) for o in obs[:8]])
            np.testing.assert_allclose(single, expected[:8], atol=1e-5)
        else:
            vectors = theirs.act(rows, h.mean, z.z)
            actions = ours.act(obs, h, z)
            np.testing.assert_allclose(actions, 2 * vectors.numpy(), atol=1e-5)
            np.testing.assert_allclose(np.stack([ours.act(o, h, z) for o in obs[:8]]), actions[:8], atol=1e-5)
            np.testing.assert_allclose(ours.q(obs, h, z), theirs.q_of(rows, vectors, h.mean, z.z).numpy(), atol=1e-5)
            pushed = np.linspace(-2, 2, 256, dtype=np.float32)[:, None]
            expected = theirs.q_of(rows, torch.from_numpy(pushed / 2), h.mean, z.z).numpy()
            np.testing.assert_allclose(ours.q(obs, h, z, actions=pushed), expected, atol=1e-5)


def test_a_pendulum_of_gymnasiums_is_logged_learned_and_controlled_from_python_alone(tmp_path, monkeypatch, capsys):
    script = ROOT / "examples" / "pendulum.py"
    page = (ROOT / "docs" / "python.md").read_text()
    for part in script.read_text().split("\n# %% ")[1:-1]:
        assert part.split("\n", 1)[1].strip() in page, "docs/python.md does not quote examples/pendulum.py any more"
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path / "run")])
    shown = runpy.run_path(str(script), run_name="__main__")
    assert shown["upright"] > 0.7 and shown["at_random"] < 0.4, capsys.readouterr().out
