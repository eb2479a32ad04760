"""Steps per second of `dealer.bots.environment`: `python tests/bench/environment.py [seconds]`.

One thread plays games of two with random legal actions, and reads the observation of each step;
shuffles and deals are in the figure. It is the median, and the best, of several runs by the clock
of the process, which other processes on the machine disturb less.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from itertools import compress

from dealer.bots.environment import ACTIONS, TwentyOne

RUNS = 5
NUMBERS = range(ACTIONS)


def steps_per_second(seconds: float) -> float:
    game, number = TwentyOne(), random.Random(1).random
    steps, games = 0, 0
    start = time.process_time()
    while (spent := time.process_time() - start) < seconds:
        games += 1
        game.reset(seed=games)
        while True:
            observation, _, terminated, _, _ = game.last()
            if terminated or observation is None:
                break
            mask = observation["action_mask"]
            legal = [*compress(NUMBERS, mask)]
            game.step(legal[int(number() * len(legal))])
            steps += 1
    return steps / spent


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    rates = [steps_per_second(seconds) for _ in range(RUNS)]
    print(
        f"environment: {statistics.median(rates):,.0f} steps/s (best of {RUNS}: {max(rates):,.0f})"
    )


if __name__ == "__main__":
    main()
