"""Data sets from arrays, files, Minari and policies."""

import gc
import os
import subprocess

import gymnasium
import numpy as np
import pytest

import windvane

RNG = np.random.default_rng(0)


def logs(episodes=6, length=8, groups=3):
    observations = RNG.normal(size=(episodes * (length + 1), 3)).astype(np.float32)
    actions = RNG.uniform(-2, 2, size=(episodes * length, 1)).astype(np.float32)
    offsets = np.arange(episodes + 1) * length
    return observations, actions, offsets, np.repeat(np.arange(groups), episodes // groups)


def test_arrays_come_back_as_they_went_in_as_views_that_nobody_writes_to(tmp_path):
    observations, actions, offsets, groups = logs()
    data = windvane.Dataset.from_numpy(
        observations,
        actions,
        episode_offsets=offsets,
        groups=groups,
        action_low=[-2],
        action_high=[2],
        dims=["x", "y", "z"],
        name="toy",
    )
    assert (data.episodes, data.transitions, data.groups, len(data)) == (6, 48, 3, 48)
    assert [dim["name"] for dim in data.spec["observation"]] == ["x", "y", "z"]
    assert data.spec["action"]["continuous"] == {"low": [-2.0], "high": [2.0]}
    saved = data.save(tmp_path / "toy")
    assert data.temporary and not saved.temporary
    loaded = windvane.Dataset.load(tmp_path / "toy")
    loaded.check()
    for some in (data, saved, loaded):
        np.testing.assert_array_equal(some.observations, observations)
        np.testing.assert_array_equal(some.actions, actions)
        np.testing.assert_array_equal(some.episode_offsets, offsets)
        np.testing.assert_array_equal(some.group_ids, groups)
        assert some.terminated.dtype == bool and not some.terminated.any()
        assert some.privileged_context_ids is None
        for column in (some.observations, some.actions, some.episode_offsets, some.group_ids, some.terminated):
            assert not column.flags.writeable and not column.flags.owndata
            with pytest.raises(ValueError):
                column[0] = 0
            with pytest.raises(ValueError):
                column.setflags(write=True)


COLUMNS = ["observations", "actions", "episode_offsets", "group_ids", "terminated"]


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="SKIPPED: no /proc to look up memory maps in")
def test_columns_are_the_memory_map_itself(tmp_path):
    observations, actions, offsets, groups = logs()
    given = {"episode_offsets": offsets, "groups": groups, "out": tmp_path / "toy"}
    data = windvane.Dataset.from_numpy(observations, actions, **given)
    for name in COLUMNS:
        one, other = getattr(data, name), getattr(data, name)
        assert np.shares_memory(one, other), name
        place, read_only = one.__array_interface__["data"]
        mapped = [line.split() for line in open("/proc/self/maps") if line.rstrip().endswith(f"toy/{name}.npy")]
        ranges = [[int(end, 16) for end in line[0].split("-")] for line in mapped]
        assert read_only and any(low <= place and place + one.nbytes <= high for low, high in ranges), name


def test_a_view_outlives_the_data_set_it_looks_into():
    observations, actions, offsets, groups = logs()
    column = windvane.Dataset.from_numpy(observations, actions, episode_offsets=offsets).observations
    part = column[5:9]
    del column
    gc.collect()
    np.testing.assert_array_equal(part, observations[5:9])


def test_transitions_with_flags_are_read_too():
    observations = np.arange(12.0).reshape(6, 2)
    following = observations + 2
    data = windvane.Dataset.from_numpy(
        observations,
        np.array([0, 1, 1, 0, 2, 1]),
        next_observations=following,
        terminals=np.array([0, 0, 1, 0, 0, 0], bool),
        timeouts=np.array([0, 0, 0, 0, 0, 1], bool),
        n_actions=4,
    )
    assert (data.episodes, data.terminated.tolist()) == (2, [True, False])
    assert len(data.spec["action"]["discrete"]["names"]) == 4
    assert data.actions.dtype == np.uint32


@pytest.mark.parametrize(
    "change, words",
    [
        ({"observations": np.array(["a"])}, "observations: dtype"),
        ({"actions": np.zeros(48, complex)}, "actions: dtype complex128, expected numbers"),
        ({"observations": np.full((54, 3), np.nan)}, "NaN|finite"),
        ({"actions": np.zeros((7, 1))}, "observations|actions"),
        ({"episode_offsets": np.array([0, 40, 20, 48])}, "do not go up"),
        ({"groups": np.zeros(5)}, "expected one for each"),
        ({"dims": ["x"]}, "names of dimensions"),
        ({"action_low": [0], "action_high": [1]}, "leave the bounds"),
    ],
)
def test_what_is_wrong_with_arrays_is_said(change, words):
    observations, actions, offsets, groups = logs()
    given = {"observations": observations, "actions": actions, "episode_offsets": offsets, "groups": groups}
    with pytest.raises(ValueError, match=words):
        windvane.Dataset.from_numpy(**(given | change))


def test_odd_layouts_in_memory_do_not_matter():
    observations, actions, offsets, _ = logs()
    odd = np.asfortranarray(np.repeat(observations.astype(np.float64), 2, axis=0))[::2]
    data = windvane.Dataset.from_numpy(odd, actions.astype(">f4"), episode_offsets=offsets.astype(np.int32))
    np.testing.assert_array_equal(data.observations, observations)
    np.testing.assert_array_equal(data.actions, actions)


def test_a_policy_of_windvanes_own_writes_what_the_command_writes(tmp_path, command):
    ours = windvane.collect("four-rooms", episodes=3, seed=11, out=tmp_path / "python")
    done = command("collect", "--env", "four-rooms", "--episodes", 3, "--seed", 11, "--out", tmp_path / "command")
    assert done.returncode == 0, done.stderr
    for column in ["observations", "actions", "episode_offsets", "group_ids", "terminated", "context_ids"]:
        one, other = (tmp_path / side / f"{column}.npy" for side in ("python", "command"))
        assert one.read_bytes() == other.read_bytes(), column
    assert (tmp_path / "python" / "meta.json").read_bytes() == (tmp_path / "command" / "meta.json").read_bytes()
    assert ours.path == tmp_path / "python"


@pytest.mark.parametrize("world", ["doors", "pointmass", "pendulum"])
def test_any_function_may_be_the_behaviour_policy(world, tmp_path):
    seen = []
    rng = np.random.default_rng(3)

    def wander(obs):
        seen.append(obs.shape)
        return rng.integers(4, size=len(obs)) if world == "doors" else rng.uniform(-1, 1, (len(obs), width))

    width = {"pointmass": 2, "pendulum": 1}.get(world, 0)
    contexts = windvane._core.World(world, 11).contexts("train")[:4]
    data = windvane.collect(world, wander, episodes=3, contexts=contexts, length=20, seed=11, out=tmp_path / "data")
    assert seen == [(12, len(data.spec["observation"]))] * 20, "all environments at once"
    assert (data.episodes, data.transitions, data.groups) == (12, 240, 4)
    assert data.privileged_context_ids.tolist() == [c for c in contexts for _ in range(3)]
    assert data.meta["provenance"]["policy"] == "wander"
    data.check()
    # What was recorded is what the world does: replayed alone, it leads to the same places.
    vector = windvane._core.Vector(windvane._core.World(world, 11), contexts[:1], None, "random", None, False)
    seeds = np.random.SeedSequence(11).generate_state(12, np.uint64)
    vector.seed(0, int(seeds[0]))
    obs = np.zeros((1, len(data.spec["observation"])), np.float32)
    vector.reset([0], obs)
    for step in range(20):
        np.testing.assert_array_equal(obs[0], data.observations[step])
        vector.step(data.actions[step : step + 1], obs, np.zeros(1), np.zeros(1, bool), np.zeros(1, bool), obs.copy())


def test_gymnasium_environments_become_groups():
    envs = [gymnasium.make("CartPole-v1") for _ in range(3)]
    rng = np.random.default_rng(0)
    data = windvane.collect(envs, lambda obs: rng.integers(2, size=len(obs)), episodes=4, seed=5)
    assert (data.episodes, data.groups, data.env) == (12, 3, "CartPole-v1")
    assert data.terminated.all() and data.group_ids.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_a_policy_that_fails_fails_with_its_own_words():
    def broken(obs):
        raise LookupError("no idea")

    with pytest.raises(LookupError, match="no idea"):
        windvane.collect("doors", broken, episodes=1)
    with pytest.raises(ValueError, match="actions"):
        windvane.collect("doors", lambda obs: [0], episodes=1)
    with pytest.raises(ValueError, match="policy: tuple, expected a function"):
        windvane.collect("doors", (), episodes=1)
    with pytest.raises(ValueError, match="env: Dataset, expected the name of a world"):
        windvane.collect(windvane.collect("doors", episodes=1), lambda obs: obs)
    with pytest.raises(ValueError, match="more than 2\\^40 transitions"):
        windvane.collect("doors", lambda obs: obs, episodes=10**30)


def test_what_is_not_there_and_what_is_there_already(tmp_path):
    with pytest.raises(FileNotFoundError):
        windvane.Dataset.load(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="no Minari data set"):
        windvane.Dataset.from_minari("windvane/nothing-v0")
    data = windvane.collect("doors", "uniform", episodes=1, length=5, out=tmp_path / "data")
    with pytest.raises(ValueError, match="is there already"):
        data.save(tmp_path / "data")
    (tmp_path / "data" / "actions.npy").write_bytes(b"junk")
    with pytest.raises(ValueError, match="actions"):
        windvane.Dataset.load(tmp_path / "data")


def test_a_figure_of_the_data_is_svg():
    figure = windvane.collect("four-rooms", "uniform", episodes=2, seed=11).figure("occupancy")
    assert figure._repr_svg_().startswith("<svg") and figure.svg.rstrip().endswith("</svg>")


def test_the_command_and_the_package_are_of_one_version(command):
    done = command("--version")
    assert isinstance(done, subprocess.CompletedProcess)
    assert windvane.__version__ in done.stdout and windvane.revision in done.stdout
