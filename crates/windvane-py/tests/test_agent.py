"""Beliefs, tasks, actions, values, sessions."""

import threading

import numpy as np
import pytest

import windvane


@pytest.fixture(scope="module")
def cells(agent):
    table = windvane.collect("doors", "uniform", episodes=20, length=40, seed=11).observations
    return np.unique(table, axis=0)


def test_a_belief_is_a_gaussian_with_an_ood_score(agent, walk):
    h = agent.belief(walk)
    assert h.mean.shape == h.std.shape and h.mean.size > 0 and (h.std > 0).all()
    assert h.transitions == 60 and h.ood_score is not None and 0 < h.p_value <= 1
    nothing = agent.belief()
    assert nothing.transitions == 0 and not np.array_equal(nothing.mean, h.mean)
    np.testing.assert_array_equal(agent.belief([walk]).mean, h.mean)


def test_a_context_may_be_a_data_set_or_a_file(agent, tmp_path):
    data = windvane.collect("doors", "uniform", episodes=1, contexts=[3], length=50, seed=11, out=tmp_path / "walk")
    pair = (data.observations, data.actions)
    expected = agent.belief(pair).mean
    np.testing.assert_array_equal(agent.belief(data).mean, expected)
    np.testing.assert_array_equal(agent.belief(tmp_path / "walk").mean, expected)


def test_a_task_is_a_goal_a_formula_a_function_or_labels(agent, cells):
    z = agent.task(goal=[7, 7])
    assert z.z.shape == (agent.dim,) and abs(np.linalg.norm(z.z) - agent.dim**0.5) < 1e-3
    np.testing.assert_array_equal(np.asarray(z), z.z)
    formula = agent.task(reward="x > 6")
    function = agent.task(reward=lambda obs: obs[:, 0] > 6)
    np.testing.assert_allclose(formula.z, function.z, rtol=1e-6)
    assert 0 <= formula.fit <= 1 and formula.fit == function.fit
    labels = agent.task(states=[[7, 7], [1, 1]], rewards=[1.0, 0.0])
    np.testing.assert_allclose(labels.z, z.z, rtol=1e-5)
    assert not np.allclose(formula.z, agent.task(reward="x > 6", inference="least-squares").z)


def test_one_observation_and_a_batch_agree(agent, walk, cells):
    h, z = agent.belief(walk), agent.task(goal=[7, 7])
    q = agent.q(cells, h, z)
    assert q.shape == (len(cells), 4) and q.dtype == np.float32
    actions = agent.act(cells, h, z)
    assert actions.dtype == np.int64
    np.testing.assert_array_equal(actions, q.argmax(1))
    for cell, row, action in zip(cells, q, actions, strict=True):
        assert agent.act(cell, h, z) == action
        np.testing.assert_array_equal(agent.q(cell, h, z), row)
    np.testing.assert_array_equal(agent.act(cells, h, z.z), actions)


def test_each_row_may_have_a_belief_and_a_task_of_its_own(agent, walk, cells):
    beliefs = [agent.belief(walk), agent.belief()]
    tasks = [agent.task(goal=[7, 7]), agent.task(goal=[1, 7])]
    rows = cells[[5, 9]]
    mixed = agent.q(rows, beliefs, tasks)
    for i in range(2):
        np.testing.assert_allclose(mixed[i], agent.q(rows[i], beliefs[i], tasks[i]), atol=1e-6)
    np.testing.assert_array_equal(agent.act(rows, beliefs, tasks), mixed.argmax(1))
    stacked = np.stack([task.z for task in tasks])
    np.testing.assert_array_equal(agent.q(rows, beliefs, stacked), mixed)
    with pytest.raises(ValueError, match="3 rows for 2"):
        agent.q(cells[:3], beliefs, tasks)


def test_a_session_acts_and_learns_online(agent, walk):
    z = agent.task(goal=[7, 7])
    observations, actions = walk
    begun = (observations[:11], actions[:10])
    frozen, online = agent.session(begun, z), agent.session(begun, z, online=True)
    for step in range(10, 60):
        action = online.act(observations[step])
        assert action == online.values(observations[step]).argmax()
        for session in (frozen, online):
            session.observe(observations[step], int(actions[step]), observations[step + 1])
    np.testing.assert_array_equal(frozen.belief.mean, agent.belief(begun).mean)
    np.testing.assert_allclose(online.belief.mean, agent.belief(walk).mean, atol=1e-5)
    assert not np.array_equal(online.belief.mean, frozen.belief.mean)
    online.reset(begun)
    np.testing.assert_array_equal(online.belief.mean, frozen.belief.mean)
    before = frozen.values(observations[0])
    frozen.retask(agent.task(goal=[1, 7]))
    assert not np.array_equal(frozen.values(observations[0]), before)
    planned = agent.session(agent.belief(walk), z, planner="sweeps")
    assert planned.act(observations[0]) in range(4)


def test_a_closed_session_says_so(agent, walk):
    with agent.session(walk, agent.task(goal=[7, 7])) as session:
        session.act([1, 1])
    assert session.closed
    for call in (lambda: session.act([1, 1]), session.restart, lambda: session.belief):
        with pytest.raises(ValueError, match="the session is closed"):
            call()


def test_threads_may_share_an_agent(agent, walk, cells):
    h, z = agent.belief(walk), agent.task(goal=[7, 7])
    expected = agent.act(cells, h, z)
    wrong = []

    def work():
        for _ in range(50):
            if not np.array_equal(agent.act(cells, h, z), expected) or agent.act(cells[0], h, z) != expected[0]:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


BAD_OBSERVATIONS = [
    (np.zeros(3), "shape"),
    (np.zeros((2, 3)), "shape"),
    (np.zeros((1, 1, 2)), "shape"),
    (np.array([np.nan, 1]), "finite"),
    (np.array([[1, 1], [np.inf, 1]]), "finite"),
    (np.array(["a", "b"]), "dtype"),
    (np.array([1j, 0]), "dtype complex128, expected numbers"),
    (None, "dtype object"),
    ([[1, 2], [3]], "not an array"),
]


@pytest.mark.parametrize("obs, words", BAD_OBSERVATIONS)
def test_a_wrong_observation_is_an_error_and_nothing_more(agent, walk, obs, words):
    h, z = agent.belief(walk), agent.task(goal=[7, 7])
    for call in (agent.act, agent.q):
        with pytest.raises(ValueError, match=words):
            call(obs, h, z)


def test_other_wrong_arguments_are_errors_too(agent, walk, run):
    h, z = agent.belief(walk), agent.task(goal=[7, 7])
    observations, actions = walk
    other = windvane.load(run)
    calls = {
        "one more observation": lambda: agent.belief((observations[:-1], actions)),
        "shape": lambda: agent.belief((observations[:, :1], actions)),
        "outside the action space|expected a move": lambda: agent.belief((observations, actions + 9)),
        "expected pairs": lambda: agent.belief([observations]),
        "expected a pair": lambda: agent.belief(7),
        "another agent": lambda: agent.act([1, 1], other.belief(), z),
        "the task of another": lambda: agent.act([1, 1], h, other.task(goal=[7, 7])),
        "expected what agent.belief": lambda: agent.act([1, 1], None, z),
        "z: shape": lambda: agent.act([1, 1], h, np.zeros(3)),
        "finite": lambda: agent.q([1, 1], h, np.full(agent.dim, np.nan)),
        "expected one of goal": lambda: agent.task(),
        "go together": lambda: agent.task(states=[[1, 1]]),
        "numbers": lambda: agent.task(goal=[1, 2, 3]),
        "unknown inference": lambda: agent.task(goal=[1, 1], inference="guess"),
        "every policy earns the same": lambda: agent.task(reward=lambda obs: np.ones(len(obs))),
        "rewards of": lambda: agent.task(reward=lambda obs: [1.0, 2.0]),
        "is nan|finite|NaN": lambda: agent.task(reward=lambda obs: obs[:, 0] * np.nan),
        "unknown planner": lambda: agent.session(walk, z, planner="magic"),
        "no task": lambda: agent.session(walk),
        "expected none": lambda: agent.q([[1, 1]], h, z, actions=[0]),
        "speed|known|unknown": lambda: agent.task(reward="speed > 1"),
    }
    for words, call in calls.items():
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(ZeroDivisionError):
        agent.task(reward=lambda obs: 1 / 0)
    assert agent.act([1, 1], h, z) in range(4), "and it still works"


def test_arrays_of_any_kind_and_layout_are_taken(agent, walk, cells):
    h, z = agent.belief(walk), agent.task(goal=[7, 7])
    expected = agent.q(cells, h, z)
    odd = np.asfortranarray(np.repeat(cells, 2, axis=0))[::2]
    for same in (cells.astype(np.float64), cells.astype(int), cells.astype(">f8"), odd, cells.tolist()):
        np.testing.assert_array_equal(agent.q(same, h, z), expected)
    assert agent.act(np.empty((0, 2)), h, z).shape == (0,)
    assert agent.q(np.empty((0, 2)), h, z).shape == (0, 4)
