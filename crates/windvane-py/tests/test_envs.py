"""Worlds as Gymnasium environments."""

import importlib.metadata
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, VectorEnv

import windvane._core
import windvane.envs

REGISTERED = {id for id in gymnasium.registry if id.startswith("windvane/")}
ON_MUJOCO = {id for id in REGISTERED if id.startswith("windvane/Ant")}
WITH_MUJOCO = any(name.startswith("ant-") for name, _ in windvane._core.worlds())
WITHOUT = "SKIPPED: this wheel was built without the feature mujoco (docs/mujoco.md)"
IDS = [
    pytest.param(id, marks=pytest.mark.skipif(id in ON_MUJOCO and not WITH_MUJOCO, reason=WITHOUT))
    for id in sorted(REGISTERED)
]


def test_every_world_is_registered_by_importing_the_package():
    assert len(REGISTERED - ON_MUJOCO) + (len(ON_MUJOCO) if WITH_MUJOCO else 0) == len(windvane._core.worlds())
    grids = {"windvane/FourRooms-v0", "windvane/RandomizedDoors-v0", "windvane/Pointmass-v0", "windvane/Pendulum-v0"}
    assert grids <= REGISTERED and {"windvane/AntWind-v0", "windvane/AntFault-v0"} <= ON_MUJOCO


def test_the_wheel_names_its_registration_as_a_plug_in():
    (found,) = importlib.metadata.entry_points(group="gymnasium.envs", name="windvane")
    assert found.value == "windvane.envs:register" and found.load() is windvane.envs.register
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="windvane")
    assert script.value == "windvane.__main__:main"


def test_the_module_may_be_named_with_the_environment_instead_of_imported():
    line = "import gymnasium; print(gymnasium.make('windvane:windvane/FourRooms-v0', context=17).reset(seed=0)[0].shape)"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True)
    assert done.stdout == "(2,)\n", done.stderr


def test_an_old_gymnasium_leaves_the_rest_of_the_package_alone(tmp_path):
    (tmp_path / "gymnasium").mkdir()
    (tmp_path / "gymnasium" / "__init__.py").write_text("from .spaces import Nothing")
    line = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import windvane; print(windvane.collect('doors', episodes=1))"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True)
    assert done.returncode == 0 and "Dataset(" in done.stdout, done.stderr
    assert "they need gymnasium 1.1 or newer" in done.stderr


@pytest.mark.skipif(WITH_MUJOCO, reason="SKIPPED: this wheel was built with the feature mujoco")
@pytest.mark.parametrize("make", [gymnasium.make, gymnasium.make_vec])
def test_an_ant_without_mujoco_says_how_to_get_it(make):
    with pytest.raises(ValueError, match="run tools/mujoco/fetch, then build with --features mujoco"):
        make("windvane/AntWind-v0")


@pytest.mark.skipif(not WITH_MUJOCO, reason=WITHOUT)
@pytest.mark.parametrize("id, width", [("windvane/AntWind-v0", 27), ("windvane/AntFault-v0", 27), ("windvane/AntWindContacts-v0", 105)])
def test_ants_walk_in_their_hidden_worlds(id, width):
    envs = gymnasium.make_vec(id, num_envs=16, task="forward")
    assert envs.single_observation_space.shape == (width,) and envs.single_action_space.shape == (8,)
    obs, info = envs.reset(seed=0)
    assert info == {} and envs.observation_space.contains(obs)
    envs.action_space.seed(0)
    over = 0
    for _ in range(300):
        obs, rewards, terminated, truncated, info = envs.step(envs.action_space.sample())
        assert np.isfinite(obs).all() and np.isfinite(rewards).all()
        over += int((terminated | truncated).sum())
    assert over >= 16, "an episode has 256 steps"
    # Dynamics are the context's: the same torques lead elsewhere in another.
    ends = []
    for context in envs.contexts("train")[:2]:
        env = gymnasium.make(id, context=context, start="fixed", task=None)
        env.reset(seed=0)
        ends.append([env.step(np.full(8, 0.5, np.float32))[0] for _ in range(20)][-1])
    assert not np.allclose(*ends)


@pytest.mark.parametrize("id", IDS)
def test_gymnasiums_own_checker_is_content(id):
    env = gymnasium.make(id, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=False)
    contexts = env.unwrapped.contexts("train")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(id, context=contexts[3], task=None).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("id", IDS)
def test_a_vector_does_what_single_environments_do(id):
    contexts = gymnasium.make(id).unwrapped.contexts("test")[:5]
    count = len(contexts)  # some ants have four
    many = gymnasium.make_vec(id, num_envs=count, contexts=contexts, max_episode_steps=None)
    assert isinstance(many, VectorEnv) and many.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    singles = [windvane._core.Vector(many._family.world, [c], 0, "random", None, False) for c in contexts]
    obs, _ = many.reset(seed=7)
    width = obs.shape[1]
    alone = [np.zeros((1, width), np.float32) for _ in contexts]
    for i, (single, to) in enumerate(zip(singles, alone, strict=True)):
        single.seed(0, 7 + i)
        single.reset([0], to)
    many.action_space.seed(7)
    over = np.zeros(count, bool)
    for _ in range(40):
        np.testing.assert_array_equal(obs[~over], np.concatenate(alone)[~over])
        actions = many.action_space.sample()
        obs, rewards, terminated, truncated, _ = many.step(actions)
        for i, single in enumerate(singles):
            paid, done = np.zeros(1), np.zeros(1, bool)
            single.step(actions[i : i + 1], alone[i], paid, done, np.zeros(1, bool), np.zeros((1, width), np.float32))
            if not over[i]:
                assert paid[0] == rewards[i] and done[0] == terminated[i]
        over |= terminated
        assert not truncated.any()


def test_an_episode_that_is_over_begins_anew_within_the_step():
    envs = gymnasium.make_vec("windvane/RandomizedDoors-v0", num_envs=64, max_episode_steps=5, task=None)
    first, info = envs.reset(seed=3)
    assert info == {}
    for step in range(1, 12):
        before = first
        first, rewards, terminated, truncated, info = envs.step(envs.action_space.sample())
        assert first is not before and not terminated.any() and not rewards.any()
        assert truncated.all() == (step % 5 == 0) and truncated.any() == truncated.all()
        if truncated.any():
            assert info["_final_obs"].all()
            # A walker moves at most one cell in a step; a new episode begins anywhere.
            assert (np.abs(info["final_obs"] - before).sum(1) <= 1).all()
            assert (np.abs(first - before).sum(1) > 1).any()
        else:
            assert info == {}


def test_reaching_the_goal_pays_once_and_ends_the_episode():
    envs = gymnasium.make_vec("windvane/RandomizedDoors-v0", num_envs=256)
    envs.reset(seed=0)
    goals = {c: goal for c in envs.contexts("train") for _, goal in envs._family.world.tasks(c)[:1]}
    wanted = np.array([goals[c] for c in envs.privileged_contexts])
    ends = 0
    for _ in range(200):
        _, rewards, terminated, _, info = envs.step(envs.action_space.sample())
        np.testing.assert_array_equal(rewards, terminated.astype(float))
        if terminated.any():
            np.testing.assert_array_equal(info["final_obs"][terminated], wanted[terminated])
            ends += int(terminated.sum())
    assert ends > 20


def test_the_same_seed_gives_the_same_episodes():
    def play(seed):
        env = gymnasium.make("windvane/FourRooms-v0")
        env.action_space.seed(0)
        return [env.reset(seed=seed)[0]] + [env.step(env.action_space.sample())[0] for _ in range(20)]

    np.testing.assert_array_equal(play(5), play(5))
    assert not np.array_equal(play(5), play(6))


def test_the_context_is_told_only_by_its_privileged_name():
    plain = gymnasium.make("windvane/FourRooms-v0", context=17)
    obs, info = plain.reset(seed=0)
    assert info == {} and obs.shape == (2,) and plain.step(0)[4] == {}
    assert plain.unwrapped.privileged_context == 17
    privileged = gymnasium.make("windvane/FourRooms-v0", context=17, privileged=True)
    assert privileged.reset(seed=0)[1] == {"privileged_context": 17} == privileged.step(0)[4]


def test_contexts_of_the_splits_are_disjoint_and_those_of_the_library():
    env = gymnasium.make("windvane/FourRooms-v0")
    train, test = env.unwrapped.contexts("train"), env.unwrapped.contexts("test")
    assert (len(train), len(test)) == (30, 20) and not set(train) & set(test)
    assert train[:3] == [2438, 4896, 850]
    drawn = {env.reset(seed=s)[0] is not None and env.unwrapped.privileged_context for s in range(40)}
    assert len(drawn) > 10 and drawn <= set(train)


@pytest.mark.parametrize("id", IDS)
def test_a_picture_shows_the_body_where_it_is(id):
    env = gymnasium.make(id, render_mode="rgb_array")
    env.reset(seed=1)
    before = env.render()
    assert before.dtype == np.uint8 and before.ndim == 3 and before.shape[2] == 3
    env.reset(seed=2)
    assert (env.render() != before).any()


def test_wrong_requests_say_what_was_expected():
    with pytest.raises(ValueError, match="is not the code of a layout|context|layout"):
        gymnasium.make("windvane/FourRooms-v0", context=10**9)
    with pytest.raises(ValueError, match="unknown task no such; known: "):
        gymnasium.make("windvane/FourRooms-v0", task="no such")
    with pytest.raises(ValueError, match='unknown split "tset"'):
        gymnasium.make("windvane/FourRooms-v0", split="tset")
    envs = gymnasium.make_vec("windvane/FourRooms-v0", num_envs=3)
    before, _ = envs.reset(seed=0)
    for bad in [[0, 1], [0, 1, 9], [0, -1, 0], [[0], [1], [2]], [0.5, 1, 1], ["a", "b", "c"], np.zeros((3, 2))]:
        with pytest.raises(ValueError):
            envs.step(np.array(bad))
    after = envs.step(np.array([0, 0, 0]))[0]
    assert (np.abs(after - before).sum(1) <= 1).all()
    points = gymnasium.make_vec("windvane/Pointmass-v0", num_envs=2)
    points.reset(seed=0)
    with pytest.raises(ValueError, match="outside the action space"):
        points.step(np.array([[0.0, np.nan], [0, 0]]))
    odd = np.zeros((2, 4), np.float64)[:, ::2]
    assert points.step(odd)[0].shape == (2, 2)
