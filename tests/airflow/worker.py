"""A worker process that dies, or freezes, at a named step of the ledger or of the desk.

The process is real and so is its death (SIGKILL, SIGSTOP): what a scheduler finds afterwards is a
task in state `running` whose process is gone. Only the moment is arranged.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.airflow.rig import Rig, Run

# A fork server that has imported everything once: a killed worker then costs a second, not ten.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.airflow.warm"])

_started: list[Any] = []


def end_workers() -> None:
    """End what a failed test has left running or frozen; pytest would wait for it for ever."""
    while _started:
        process = _started.pop()
        process.kill()
        process.join(10)


class Worker:
    """One task of a run in a process of its own.

    Args:
        run: the run; all stages before the task have ended.
        task: the task to try.
        at: `open`, `begin_round`, `answer_round`, `seal`, `begin_publishing` or `publish` of the
            ledger.
        nth: the how-manieth call of it.
        after: strike after that step has been committed, instead of before it begins.
        sig: what strikes: SIGKILL, or SIGSTOP for a process that comes back later.
    """

    def __init__(
        self,
        run: Run,
        task: str,
        *,
        at: str,
        nth: int = 1,
        after: bool = False,
        sig: int = signal.SIGKILL,
    ) -> None:
        names = (run.dag_id, run.run_id, task)
        moment = (at, nth, after, int(sig))
        arguments = (os.environ.copy(), run.rig, names, moment)
        run.schedule(task)
        self.process = CONTEXT.Process(target=_work, args=arguments)
        self.process.start()
        _started.append(self.process)

    def wait_dead(self) -> None:
        """Wait for the blow."""
        self.process.join(60)
        assert self.process.exitcode == -signal.SIGKILL, self.process.exitcode

    def wait_stopped(self) -> None:
        """Wait until the process is frozen."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        for _ in range(600):
            if stat.read_text().rpartition(")")[2].split()[0] == "T":
                return
            time.sleep(0.1)
        raise AssertionError("the worker never came to the step at which it is frozen")

    def thaw(self) -> None:
        """Let a frozen process live on to its end."""
        os.kill(self.process.pid or 0, signal.SIGCONT)
        self.process.join(60)


def _work(
    environment: dict[str, str],
    rig: Rig,
    names: tuple[str, str, str],
    moment: tuple[str, int, bool, int],
) -> None:
    os.environ.update(environment)
    _arrange(*moment)
    dag_id, run_id, task = names
    Run(rig, dag_id, run_id).work(task)


def _arrange(at: str, nth: int, after: bool, sig: int) -> None:
    from include.budget.ledger import Ledger

    step: Callable[..., Any] = getattr(Ledger, at)
    calls = []

    def struck(*args: Any, **kwargs: Any) -> Any:
        calls.append(at)
        if len(calls) == nth and not after:
            os.kill(os.getpid(), sig)
        answer = step(*args, **kwargs)
        if len(calls) == nth and after:
            os.kill(os.getpid(), sig)
        return answer

    setattr(Ledger, at, struck)
