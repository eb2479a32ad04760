"""An environment in which programs learn to play, in one process and without a server.

The interface (README.md has an example) is PettingZoo's for AEC environments (agents
act one after the other), without its package; a subclass of `TwentyOne` and `pettingzoo.AECEnv`
adds the spaces. The game: in each deal the players in turn draw a card from a shoe of four decks,
which only they see, or stop. The player nearest to 21 without exceeding it wins the deal: 1 point,
and -1 for the others; several share it. The cards of a deal stay with their players, and the game
ends when the shoe has too few for another.

Every draw is a command that `dealer.game.decide` accepts and `evolve` applies, as on a server, but
no event is stored, signed or sealed. The shoe is shuffled with the tape of a server, from `seed` in
place of its secret: the same seed gives the same game.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from dealer.game.cards import build
from dealer.game.commands import (
    Actor,
    Command,
    Draw,
    FinishShuffle,
    OpenRound,
    OpenTable,
    StartShuffle,
    TakeSeat,
)
from dealer.game.decide import NoRoundSecrets, RoundSecrets, decide
from dealer.game.stacks import DECK, hand
from dealer.game.state import Table, evolve

STOP, DRAW = 0, 1
ACTIONS = 2
PLAYERS_MAX = 7
DECKS = 4
LIMIT = 21
CARDS_MAX = 8
"""Cards that one player draws in a deal at most; `drawn` of an observation has so many places."""

_HOST = Actor(host=True)
_SHOE = build(decks=DECKS)
_VALUES = dict(zip("A23456789TJQK", (*range(1, 11), 10, 10, 10), strict=True))


class _Unsealed:
    """Stands in for the secrets of a round whose cards no one has to check."""

    commitment = bytes(32)

    def __init__(self, secret: bytes) -> None:
        self.secret = secret

    def slot_salt(self, slot: int) -> bytes:
        return self.commitment

    def slot_commitments(self, first: int, cards: Sequence[str]) -> list[bytes]:
        return [self.commitment] * len(cards)

    def player_digest(self, *, k: int, seat: int, nonce: bytes) -> bytes:
        return self.commitment


class TwentyOne:
    """A game of 2 to 7 `players`; `agents` are their names, `agent_selection` is whose turn it is.

    An observation has the agent's cards of this deal, `drawn` (their values from 1 to 10, then
    zeros) and `total`; `counts` (the numbers of cards of all players in this deal, the agent's
    first), `stopped` (for each of them whether it has stopped), `deck` (the number of cards in the
    shoe) and `action_mask` (for STOP and DRAW 1 if it is legal).
    """

    def __init__(self, players: int = 2) -> None:
        if not 2 <= players <= PLAYERS_MAX:
            raise ValueError(f"TwentyOne has 2 to {PLAYERS_MAX} players.")
        self.possible_agents = [f"player_{seat}" for seat in range(1, players + 1)]
        self._places = {agent: place for place, agent in enumerate(self.possible_agents)}
        self._draws = [Draw(Actor(seat=seat)) for seat in range(1, players + 1)]
        self._hands = [hand(seat) for seat in range(1, players + 1)]
        self._seed = 0
        self.agents: list[str] = []
        self._house: RoundSecrets = NoRoundSecrets()
        self._table = Table()
        self._do(OpenTable("environment", bytes(32), {}))
        for name in self.possible_agents:
            self._do(TakeSeat(name))
        self._seated = self._table

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        """Shuffle a new shoe for a new game; without a seed the one after the last."""
        self._seed = self._seed + 1 if seed is None else seed
        self._house = _Unsealed(sha256(f"twenty-one {self._seed}".encode()).digest())
        self._table = replace(self._seated, seats=dict(self._seated.seats), round_versions=[])
        self._do(OpenRound(_HOST, _SHOE, "house", 1000, 1000))
        self._do(StartShuffle(_HOST))
        self._do(FinishShuffle(bytes(32)))
        assert self._table.round is not None
        self._faces, self._stacks = self._table.round.faces, self._table.round.stacks
        for name in self._hands:
            self._stacks[name] = []
        agents = self.possible_agents
        self.agents = list(agents)
        self.rewards = dict.fromkeys(agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(agents, 0.0)
        self.terminations = dict.fromkeys(agents, False)
        self.truncations = dict.fromkeys(agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in agents}
        self._scored = False
        self._next_deal()

    def agent_iter(self, max_iter: int = 2**63) -> Iterator[str]:
        """The agent whose turn it is, again and again until the game is over for all."""
        while self.agents and max_iter > 0:
            max_iter -= 1
            yield self.agent_selection

    def observe(self, agent: str) -> dict[str, Any]:
        """What this agent may know."""
        own = self._places[agent]
        faces, start = self._faces, self._starts[own]
        drawn = [_VALUES[(faces[slot] or "")[0]] for slot in self._stacks[self._hands[own]][start:]]
        counts, stopped = self._counts, self._stopped
        return {
            "drawn": drawn + [0] * (CARDS_MAX - len(drawn)),
            "total": sum(drawn),
            "counts": counts[own:] + counts[:own],
            "stopped": stopped[own:] + stopped[:own],
            "deck": len(self._stacks[DECK]),
            "action_mask": [1, 0 if len(drawn) == CARDS_MAX else 1],
        }

    def last(
        self, observe: bool = True
    ) -> tuple[dict[str, Any] | None, float, bool, bool, dict[str, Any]]:
        """(observation, reward since its last step, terminated, truncated, info) of the agent."""
        agent = self.agent_selection
        return (
            self.observe(agent) if observe else None,
            self._cumulative_rewards[agent],
            self.terminations[agent],
            self.truncations[agent],
            self.infos[agent],
        )

    def step(self, action: int | None) -> None:
        """Act for `agent_selection`; None once its game is over. ValueError if it is illegal."""
        agent, turn = self.agent_selection, self._turn
        if self.terminations[agent]:
            self._remove(agent, action)
            return
        self._cumulative_rewards[agent] = 0.0
        if self._scored:
            self._scored, self.rewards = False, dict.fromkeys(self.agents, 0.0)
        if action == DRAW and self._counts[turn] < CARDS_MAX:
            self._do(self._draws[turn])
            self._counts[turn] += 1
        elif action == STOP:
            self._stopped[turn] = 1
        else:
            raise ValueError(f"{action} is no legal action")
        self._pass_turn()

    def close(self) -> None:
        """Does nothing; part of the AEC interface."""

    def _next_deal(self) -> None:
        players = len(self._hands)
        self._starts = [len(self._stacks[name]) for name in self._hands]
        self._counts, self._stopped = [0] * players, [0] * players
        self._turn = 0
        self.agent_selection = self.possible_agents[0]

    def _pass_turn(self) -> None:
        """The next player that has not stopped; after the last one, the result of the deal."""
        players, turn = len(self._stopped), self._turn
        for _ in range(players):
            turn = (turn + 1) % players
            if not self._stopped[turn]:
                self._turn, self.agent_selection = turn, self.possible_agents[turn]
                return
        self._score()
        if len(self._stacks[DECK]) >= players * CARDS_MAX:
            self._next_deal()
            return
        self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = self.agents[0]

    def _score(self) -> None:
        totals = [self.observe(agent)["total"] for agent in self.agents]
        self._scored = True
        best = max((total for total in totals if total <= LIMIT), default=None)
        for agent, total in zip(self.agents, totals, strict=True):
            self.rewards[agent] = 1.0 if total == best else -1.0
            self._cumulative_rewards[agent] += self.rewards[agent]

    def _remove(self, agent: str, action: int | None) -> None:
        """An agent whose game is over takes its last, empty step."""
        if action is not None:
            raise ValueError("This agent's game is over: its action is None.")
        self.agents.remove(agent)
        for of_agents in (
            self.rewards, self._cumulative_rewards, self.terminations, self.truncations, self.infos,
        ):  # fmt: skip
            del of_agents[agent]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        if self.agents:
            self.agent_selection = self.agents[0]

    def _do(self, command: Command) -> None:
        table = self._table
        for event in decide(command, table, self._house):
            evolve(table, event, 0)
