"""Worlds as Gymnasium environments."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, VectorEnv

import windvane._core

IDS = sorted(id for id in gymnasium.registry if id.startswith("windvane/"))


def test_every_world_is_registered_by_importing_the_package():
    assert len(IDS) == len(windvane._core.worlds())
    assert {"windvane/FourRooms-v0", "windvane/RandomizedDoors-v0", "windvane/Pointmass-v0"} <= set(IDS)


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
    many = gymnasium.make_vec(id, num_envs=5, contexts=contexts, max_episode_steps=None)
    assert isinstance(many, VectorEnv) and many.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    singles = [windvane._core.Vector(many._family.world, [c], 0, "random", None, False) for c in contexts]
    obs, _ = many.reset(seed=7)
    width = obs.shape[1]
    alone = [np.zeros((1, width), np.float32) for _ in contexts]
    for i, (single, to) in enumerate(zip(singles, alone, strict=True)):
        single.seed(0, 7 + i)
        single.reset([0], to)
    many.action_space.seed(7)
    over = np.zeros(5, bool)
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
    told = gymnasium.make("windvane/FourRooms-v0", context=17, privileged=True)
    assert told.reset(seed=0)[1] == {"privileged_context": 17} == told.step(0)[4]


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
