"""Frames of the table page while all cards of a deck are dealt: `python tests/bench/frames.py`.

Chromium as a phone, with four players at the table. Prints the intervals between frames of the
page's main thread, in milliseconds, the number of layouts, and the processor time of the longest
task of that thread and of all of them, which other programs on the machine prolong less than the
intervals.
Then what took part in frames that Chromium calls long (50 ms or more); those without parts waited
for the processor. `--save FILE` writes every interval and task as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from playwright.async_api import Browser, CDPSession, async_playwright  # noqa: E402

import dealer  # noqa: E402
from tests.browser.conftest import FLAGS  # noqa: E402
from tests.browser.player_page import PlayerPage  # noqa: E402
from tests.harness.server_process import ServerProcess  # noqa: E402

OTHERS = ("Bob", "Cleo", "Dan")
EACH = 13
LIMIT = 50.0
"""Milliseconds above which a frame is seen as a stop."""

RECORD = """() => {
  const recording = { intervals: [], long: [] };
  let last = null;
  let running = true;
  const tick = (now) => {
    if (last !== null) recording.intervals.push(now - last);
    last = now;
    if (running) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
  const observer = new PerformanceObserver((list) => {
    for (const one of list.getEntries()) {
      recording.long.push({
        duration: one.duration,
        layout: one.startTime + one.duration - (one.styleAndLayoutStart || one.startTime),
        scripts: one.scripts.map((script) => ({
          by: script.invoker, of: script.sourceURL.split("/").slice(5).join("/"),
          ms: script.duration, layout: script.forcedStyleAndLayoutDuration,
        })),
      });
    }
  });
  observer.observe({ type: "long-animation-frame" });
  globalThis.endRecording = () => {
    running = false;
    observer.disconnect();
    return recording;
  };
}"""
TASK = "ThreadControllerImpl::RunTask"
DEALT = f"""() => document.querySelectorAll("#hand [data-slot]").length === {EACH}
  && document.querySelector("#overlay").children.length === 0
  && document.getAnimations().every((one) => one.playState === "finished")"""


@dataclass(frozen=True, slots=True)
class Phone:
    width: int
    height: int
    scale: float
    """Pixels of the screen for each CSS pixel."""

    slower: int
    """By how much Chromium slows the processor down."""

    def __str__(self) -> str:
        slow = f", processor {self.slower} times slower" if self.slower > 1 else ""
        return f"{self.width}×{self.height}{slow}"


PHONES = (Phone(390, 844, 2, 1), Phone(360, 640, 2, 1), Phone(360, 640, 2, 4))


async def deal(browser: Browser, phone: Phone) -> dict[str, Any]:
    """The frames of one deal, at a table of its own."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="frames-"))
        server = await stack.enter_async_context(ServerProcess(Path(folder)))
        context = await stack.enter_async_context(
            await browser.new_context(
                viewport={"width": phone.width, "height": phone.height},
                device_scale_factor=phone.scale,
                base_url=f"http://127.0.0.1:{server.port}",
                has_touch=True,
                is_mobile=True,
            )
        )
        page = await context.new_page()
        await page.goto("/")
        ada = PlayerPage(page, "Ada")
        path = await ada.open_table()
        for name in OTHERS:
            house = await stack.enter_async_context(dealer.connect(server.url, name=name))
            await house.join(path.rpartition("/")[2])
        await ada.do("Shuffle and start")
        await ada.expect_log("Shuffled 52 cards, ")
        await ada.set_count(EACH)
        session = await context.new_cdp_session(page)
        await session.send("Emulation.setCPUThrottlingRate", {"rate": phone.slower})
        await session.send("Performance.enable")
        before = await layouts(session)
        await browser.start_tracing(page=page, categories=["toplevel", "__metadata"])
        await page.evaluate(RECORD)
        await ada.do("Deal")
        await page.wait_for_function(DEALT)
        recording: dict[str, Any] = await page.evaluate("endRecording()")
        traced = json.loads(await browser.stop_tracing())["traceEvents"]
        return recording | {
            "layouts": await layouts(session) - before,
            "tasks": tasks(traced),
        }


async def layouts(session: CDPSession) -> int:
    """How many layouts the page has had."""
    metrics = (await session.send("Performance.getMetrics"))["metrics"]
    return int(next(one["value"] for one in metrics if one["name"] == "LayoutCount"))


def tasks(traced: list[dict[str, Any]]) -> list[float]:
    """Milliseconds of processor time of each task of the page's main thread, the longest first."""
    threads = {
        (one["pid"], one["tid"])
        for one in traced
        if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"
    }
    spent = [
        one["tdur"] / 1000
        for one in traced
        if one["name"] == TASK and (one["pid"], one["tid"]) in threads and "tdur" in one
    ]
    return sorted(spent, reverse=True)


def show(phone: Phone, recording: dict[str, Any]) -> None:
    frames = sorted(recording["intervals"])
    p95 = frames[round(0.95 * (len(frames) - 1))]
    over = sum(one > LIMIT for one in frames)
    figures = (len(frames), statistics.median(frames), p95, frames[-1])
    print(f"{phone!s:40} {figures[0]:6d} " + " ".join(f"{one:7.1f}" for one in figures[1:]), end="")
    print(f" {over:8d} {recording['layouts']:7d} {recording['tasks'][0]:7.1f} ", end="")
    print(f"{sum(recording['tasks']):7.1f}", flush=True)
    for frame in recording["long"]:
        parts = [
            f"{one['of'] or one['by']} {one['ms']:.0f} (layout {one['layout']:.0f})"
            for one in frame["scripts"]
        ]
        print(f"    {frame['duration']:.0f} ms: {', '.join(parts)}; painting {frame['layout']:.0f}")


async def main(deals: int, save: Path | None) -> None:
    saved: dict[str, list[Any]] = {}
    print(
        f"{'':40} {'frames':>6} {'median':>7} {'p95':>7} {'longest':>7} {'> 50 ms':>8} "
        f"{'layouts':>7} {'task':>7} {'all':>7}"
    )
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(FLAGS)
        )
        for phone in PHONES:
            for _ in range(deals):
                recording = await deal(browser, phone)
                saved.setdefault(str(phone), []).append(recording)
                show(phone, recording)
        await browser.close()
    if save is not None:
        await asyncio.to_thread(save.write_text, json.dumps(saved, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--deals", type=int, default=3, help="with each phone")
    parser.add_argument("--save", type=Path, help="a file for every interval")
    args = parser.parse_args()
    asyncio.run(main(args.deals, args.save))
