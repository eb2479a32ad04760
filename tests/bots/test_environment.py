"""The environment for learning: its game, what an observation has, and PettingZoo's own test."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dealer.bots.environment import CARDS_MAX, DRAW, LIMIT, STOP, TwentyOne


def played(game: TwentyOne, *, seed: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Observations of a game with random actions."""
    game.reset(seed=seed)
    for _ in game.agent_iter():
        observation, _, terminated, _, _ = game.last()
        assert observation is not None
        yield observation
        legal = [action for action in (STOP, DRAW) if observation["action_mask"][action]]
        game.step(None if terminated else rng.choice(legal))


def test_a_seed_gives_the_same_game():
    games = [list(played(TwentyOne(3), seed=seed, rng=random.Random(1))) for seed in (1, 1, 2)]
    assert games[0] == games[1] != games[2]


def test_a_deal_is_won_by_the_nearest_to_21():
    game, rng = TwentyOne(2), random.Random(5)
    outcomes = set()
    for seed in range(20):
        for observation in played(game, seed=seed, rng=rng):
            assert observation["total"] == sum(observation["drawn"])
            if game._scored and len(game.agents) == 2:
                outcomes.add(tuple(game.rewards.values()))
    assert outcomes == {(1.0, -1.0), (-1.0, 1.0), (1.0, 1.0), (-1.0, -1.0)}


@pytest.mark.parametrize(
    ("totals", "rewards"),
    [((20, 21), (-1, 1)), ((22, 5), (-1, 1)), ((7, 7), (1, 1)), ((22, LIMIT + 9), (-1, -1))],
)
def test_rewards(monkeypatch, totals, rewards):
    game = TwentyOne(2)
    game.reset(seed=1)
    given = dict(zip(game.agents, totals, strict=True))
    monkeypatch.setattr(game, "observe", lambda agent: {"total": given[agent]})
    game.step(STOP)
    game.step(STOP)
    assert tuple(game.rewards.values()) == rewards


def test_an_observation_has_nothing_hidden():
    """Other cards in the shoe and in other hands leave every byte of it as it is."""
    game = TwentyOne(3)
    for count, _ in enumerate(played(game, seed=3, rng=random.Random(2))):
        if count == 40:
            break
    own = game.agents[1]
    before = game.observe(own)
    seen = set(game._stacks["hand:2"])
    hidden = [slot for slot in range(len(game._faces)) if slot not in seen]
    faces = [game._faces[slot] for slot in hidden]
    assert len(set(faces[:50])) > 40
    for slot, face in zip(hidden, reversed(faces), strict=True):
        game._faces[slot] = face
    assert game.observe(own) == before
    assert game.observe(game.agents[0]) != before


def test_illegal_actions_change_nothing():
    game = TwentyOne(2)
    game.reset(seed=1)
    with pytest.raises(ValueError, match="no legal action"):
        game.step(7)
    for action in (DRAW, STOP, *[DRAW] * (CARDS_MAX - 1)):
        game.step(action)
    assert game.observe("player_1")["action_mask"] == [1, 0]
    with pytest.raises(ValueError, match="no legal action"):
        game.step(DRAW)
    with pytest.raises(ValueError, match="2 to 7 players"):
        TwentyOne(8)


@pytest.mark.slow
def test_it_is_an_environment_of_pettingzoo():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from gymnasium import spaces
        from pettingzoo import AECEnv
        from pettingzoo.test import api_test

    class Environment(TwentyOne, AECEnv):
        """With the spaces, and arrays in place of lists."""

        metadata = {"name": "twenty_one_v0", "render_modes": []}  # noqa: RUF012
        render_mode = None

        def observation_space(self, agent: str) -> Any:
            players = len(self.possible_agents)
            members: dict[str, Any] = {
                "drawn": spaces.Box(0, 10, (CARDS_MAX,), np.int64),
                "total": spaces.Box(0, 10 * CARDS_MAX, (), np.int64),
                "counts": spaces.Box(0, CARDS_MAX, (players,), np.int64),
                "stopped": spaces.Box(0, 1, (players,), np.int64),
                "deck": spaces.Box(0, 1024, (), np.int64),
                "action_mask": spaces.Box(0, 1, (2,), np.int8),
            }
            return self._spaces.setdefault(agent, spaces.Dict(members))

        def action_space(self, agent: str) -> Any:
            return self._actions.setdefault(agent, spaces.Discrete(2))

        def __init__(self) -> None:
            self._spaces: dict[str, Any] = {}
            self._actions: dict[str, Any] = {}
            super().__init__(3)

        def observe(self, agent: str) -> dict[str, Any]:
            found = super().observe(agent)
            mask = np.array(found.pop("action_mask"), np.int8)
            return {name: np.array(of, np.int64) for name, of in found.items()} | {
                "action_mask": mask
            }

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on styles of observations
        api_test(Environment(), num_cycles=500)
