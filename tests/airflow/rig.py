"""Drives real DAG runs step by step: what the scheduler does, without its waiting.

`dag.test()` always makes a new run, so it cannot show a clear, a second try after a kill, or a run
that another user has triggered. The rig uses the same parts (the DAG bag, the serialized DAG, the
DAG run's own state machine, the task runner behind the execution API) and keeps the run.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
import pytest

from tests.airflow import world

STAGES = ("load", "validate", "budget_eval", "synthesize", "quality_check", "publish")
BUNDLE = "dags-folder"

# The files whose DAGs the session's database holds: storing them again costs half a second.
_stored: list[Any] = []


class Rig:
    """One steward's installation: files, source, ledger and places, all below one folder.

    Airflow's metadata database is the session's; the ledger is a database of this rig alone.
    """

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, ledger: Path) -> None:
        self.root = root
        self.config = root / "config"
        self.source = root / "raw" / "pets.parquet"
        self.releases = root / "releases"
        self.ledger_file = ledger
        for name, value in self.environment().items():
            patch.setenv(name, value)
        world.write_source(self.source, world.rows())
        self.declare()

    def environment(self) -> dict[str, str]:
        """Return the variables that lead `include/` and Airflow to this rig."""
        return {
            "CUSYN_CONFIG_DIR": str(self.config),
            "CUSYN_PROJECT_ROOT": str(self.root),
            "CUSYN_VAR_DIR": str(self.root / "var"),
            "CUSYN_LEDGER_URL": f"sqlite:///{self.ledger_file}",
            "CUSYN_CODE_REVISION": "test",
            "AIRFLOW_CONN_PRIVACY_LEDGER": json.dumps(
                {"conn_type": "sqlite", "host": str(self.ledger_file)}
            ),
        }

    def airflow_environment(self) -> dict[str, str]:
        """Return what of it Airflow's own processes may see."""
        return self.environment()

    # What the steward writes.

    def declare(
        self,
        *,
        dataset: Mapping[str, Any] | None = None,
        budgets: Mapping[str, Any] | None = None,
        release: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the three files, each with some keys changed."""
        place = {"source": {"path": str(self.source)}}
        told = world.merged(world.merged(world.DATASET, place), dataset or {})
        world.write_yaml(self.config / "datasets" / "pets.yaml", told)
        world.write_yaml(self.config / "budgets.yaml", world.merged(world.BUDGETS, budgets or {}))
        self.release_file("pets_by_year", **(release or {}))

    def release_file(self, name: str, **changes: Any) -> Path:
        """Write a release file of that name."""
        publish = {"release": name, "publish": {"uri": str(self.releases)}}
        told = world.merged(world.merged(world.RELEASE, publish), changes)
        return world.write_yaml(self.config / "releases" / f"{name}.yaml", told)

    def register(self) -> None:
        """Enter the declarations into the ledger."""
        from include.cli.commands import open_ledger, register_all
        from include.settings import load_settings

        register_all(open_ledger(load_settings()), load_settings(), actor="steward")

    # What Airflow does.

    def parse(self) -> dict[str, Any]:
        """Parse the project's DAG folder and store it, as the dag-processor does."""
        from airflow.dag_processing.bundles.manager import DagBundlesManager
        from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db

        folder = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
        bag = BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name=BUNDLE)
        assert not bag.import_errors
        if _stored != (seen := self._seen()):
            DagBundlesManager().sync_bundles_to_db()
            sync_bag_to_db(bag, BUNDLE, None)
            _stored[:] = seen
        return bag.dags

    def store(self, dag: Any) -> None:
        """Store a DAG that stands in no file of the project."""
        from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db

        self.parse()
        bag = BundleDagBag(dag_folder=self.config, bundle_path=self.config, bundle_name=BUNDLE)
        bag.bag_dag(dag)
        sync_bag_to_db(bag, BUNDLE, None)
        _stored.clear()

    def _seen(self) -> list[Any]:
        """Return what changes when the steward edits a file."""
        files = sorted(path for path in self.config.rglob("*.yaml"))
        return [self.root, *((path, path.stat().st_mtime_ns) for path in files)]

    def trigger(
        self,
        dag_id: str = "release__pets_by_year",
        date: str | None = "2020-12-31",
        *,
        user: str | None = "alice",
        run_type: str = "manual",
        run_id: str | None = None,
        conf: dict[str, Any] | None = None,
    ) -> Run:
        """Make a DAG run, as the API server does for a user or the scheduler for a schedule."""
        from airflow.serialization.serialized_objects import DagSerialization
        from airflow.utils.session import create_session
        from airflow.utils.state import DagRunState
        from airflow.utils.types import DagRunTriggeredByType, DagRunType

        dag = self.parse()[dag_id]
        day = pendulum.parse(date, tz="UTC") if date else None
        run_id = run_id or f"{run_type}__{date}_{pendulum.now('UTC').isoformat()}"
        with create_session() as session:
            DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).create_dagrun(
                run_id=run_id,
                logical_date=day,
                data_interval=(day, day) if day else None,
                run_after=pendulum.now("UTC"),
                conf=conf or {},
                run_type=DagRunType(run_type),
                triggered_by=DagRunTriggeredByType.REST_API,
                triggering_user_name=user,
                state=DagRunState.RUNNING,
                session=session,
            )
        return Run(self, dag_id, run_id)

    def release(self, date: str = "2020-12-31", **options: Any) -> Run:
        """Trigger the release and run it to its end."""
        return self.trigger(date=date, **options).finish()

    # What the ledger says.

    def reader(self) -> Any:
        """Open the ledger's reader."""
        from include.budget.reader import LedgerReader
        from include.budget.store import connect

        return LedgerReader(connect(f"sqlite:///{self.ledger_file}"))

    def ledger(self) -> Any:
        """Open the ledger's writer."""
        from include.budget.ledger import Ledger
        from include.budget.store import connect

        return Ledger(connect(f"sqlite:///{self.ledger_file}"))

    def charges(self) -> list[Any]:
        """Return all charges, oldest first."""
        return self.reader().charges()[::-1]

    def charge(self) -> Any:
        """Return the only charge there is."""
        (charge,) = self.charges()
        return charge

    def spent(self) -> dict[str, tuple[int, int]]:
        """Return what each pool holds and has spent."""
        return {pool.pool_id: (pool.held_pico, pool.spent_pico) for pool in self.reader().pools()}

    def kinds(self, charge_id: str | None = None) -> list[str]:
        """Return the kinds of a charge's journal entries, in order."""
        charge_id = charge_id or self.charge().charge_id
        return [entry.kind for entry in self.reader().entries(charge_id)]

    def verify(self) -> Any:
        """Replay the journal against the balances; returns the report, found clean."""
        from include.budget.store import connect
        from include.budget.verify import verify

        report = verify(connect(f"sqlite:///{self.ledger_file}"))
        assert report.ok, report.problems
        return report

    def package_bytes(self) -> dict[str, bytes]:
        """Return every published file by its place below the release folder."""
        files = (path for path in sorted(self.releases.rglob("*")) if path.is_file())
        return {str(path.relative_to(self.releases)): path.read_bytes() for path in files}

    def forget_places(self) -> None:
        """Remove what is on disk but the source and the ledger."""
        shutil.rmtree(self.root / "var", ignore_errors=True)


class Run:
    """One DAG run, by its names; every look at it is a fresh one."""

    def __init__(self, rig: Rig, dag_id: str, run_id: str) -> None:
        self.rig, self.dag_id, self.run_id = rig, dag_id, run_id

    def finish(self, *, until: str | None = None, limit: int = 40, dag: Any = None) -> Run:
        """Run what is due until the run has ended, or until a task has had one try more.

        A task that waits for its retry is not waited for: the clock is set on.
        """
        dag = dag or self.rig.parse()[self.dag_id]
        for _ in range(limit):
            if (done := self._step(dag)) is None or until in done:
                return self
        raise AssertionError(f"{self.run_id} did not end: {self.states()}")

    def _step(self, dag: Any) -> list[str] | None:
        names = self._due(dag)
        for name in names or ():
            self.work(name, dag)
        return names

    def _due(self, dag: Any) -> list[str] | None:
        """Let the run's state machine schedule what is due; None when the run has ended."""
        from airflow.utils.session import create_session
        from airflow.utils.state import DagRunState, TaskInstanceState

        with create_session() as session:
            run = self._orm(session)
            if run.state == DagRunState.QUEUED:  # a clear has queued it
                run.state = DagRunState.RUNNING
            if run.state != DagRunState.RUNNING:
                return None
            for ti in run.get_task_instances(session=session):
                if ti.state == TaskInstanceState.UP_FOR_RETRY and ti.end_date is not None:
                    ti.end_date -= timedelta(hours=1)
            session.flush()
            run.dag = _serialized(dag)
            due, _ = run.update_state(session=session)
            for ti in due:
                ti.try_number += 1
                ti.state = TaskInstanceState.SCHEDULED
            tis = run.get_task_instances(session=session)
            return [ti.task_id for ti in tis if ti.state == TaskInstanceState.SCHEDULED]

    def schedule(self, task: str) -> None:
        """Let the state machine schedule one task, without working on it."""
        assert self._due(self.rig.parse()[self.dag_id]) == [task]

    def work(self, task: str, dag: Any = None) -> None:
        """Do a scheduled task's work in this process, as a worker does."""
        from airflow.sdk.definitions.dag import _run_task
        from airflow.utils.session import create_session

        dag = dag or self.rig.parse()[self.dag_id]
        with create_session() as session:
            ti = self._ti(session, task)
            session.expunge_all()
        _run_task(ti=ti, task=dag.get_task(task))

    # What people and machines do to it.

    def clear(self, *tasks: str) -> Run:
        """Clear tasks, or the whole run, as the API does."""
        from airflow.models.taskinstance import clear_task_instances
        from airflow.utils.session import create_session

        with create_session() as session:
            tis = self._orm(session).get_task_instances(session=session)
            chosen = [ti for ti in tis if not tasks or ti.task_id in tasks]
            assert chosen
            clear_task_instances(chosen, session)
        return self

    def mark(self, task: str, state: str = "success") -> Run:
        """Set a task's colour by hand, as the button in the UI does."""
        from airflow.utils.session import create_session
        from airflow.utils.state import TaskInstanceState

        dag = self.rig.parse()[self.dag_id]
        with create_session() as session:
            _serialized(dag).set_task_instance_state(
                task_id=task,
                run_id=self.run_id,
                state=TaskInstanceState(state),
                session=session,
            )
        return self

    def answer(self, task: str, option: str, *, by: str) -> Run:
        """Answer a task that waits for a person, as the API does for the user who is logged in."""
        from airflow.models.hitl import HITLDetail, HITLUser
        from airflow.models.trigger import handle_event_submit
        from airflow.triggers.base import TriggerEvent
        from airflow.utils.session import create_session

        with create_session() as session:
            ti = self._ti(session, task)
            assert ti.state == "awaiting_input", ti.state
            asked = session.get(HITLDetail, ti.id)
            asked.responded_by = HITLUser(id=by, name=by)
            asked.responded_at = pendulum.now("UTC")
            asked.chosen_options, asked.params_input = [option], {}
            event = TriggerEvent(asked.as_resume_event_payload())
            handle_event_submit(event, task_instance=ti, session=session)
        return self

    def worker_died(self, task: str) -> Run:
        """Let Airflow notice that a running task's process is gone, as its scheduler does."""
        from airflow.utils.session import create_session

        dag = self.rig.parse()[self.dag_id]
        with create_session() as session:
            ti = self._ti(session, task)
            assert ti.state == "running", ti.state
            ti.task = _serialized(dag).get_task(task)
            ti.handle_failure("no heartbeat", session=session)
        return self

    def delete(self) -> None:
        """Delete the run and its task instances, as the API does."""
        from airflow.utils.session import create_session

        with create_session() as session:
            session.delete(self._orm(session))

    # How it stands.

    @property
    def state(self) -> str:
        """The run's state."""
        from airflow.utils.session import create_session

        with create_session() as session:
            return str(self._orm(session).state)

    def states(self) -> dict[str, str | None]:
        """Return the state of each task."""
        from airflow.utils.session import create_session

        with create_session() as session:
            tis = self._orm(session).get_task_instances(session=session)
            return {ti.task_id: ti.state and str(ti.state) for ti in tis}

    def tries(self, task: str) -> int:
        """Return how often a task has been tried."""
        from airflow.utils.session import create_session

        with create_session() as session:
            return int(self._ti(session, task).try_number)

    def xcom(self, task: str) -> Any:
        """Return what a task has left for those after it."""
        from airflow.models.xcom import XComModel
        from airflow.utils.session import create_session
        from sqlalchemy import select

        with create_session() as session:
            value = session.scalar(
                select(XComModel.value).where(
                    XComModel.dag_id == self.dag_id,
                    XComModel.run_id == self.run_id,
                    XComModel.task_id == task,
                    XComModel.key == "return_value",
                )
            )
        return json.loads(value) if isinstance(value, str) else value

    def _orm(self, session: Any) -> Any:
        from airflow.models.dagrun import DagRun
        from sqlalchemy import select

        found = select(DagRun).where(DagRun.dag_id == self.dag_id, DagRun.run_id == self.run_id)
        return session.scalars(found).one()

    def _ti(self, session: Any, task: str) -> Any:
        from airflow.models.taskinstance import TaskInstance
        from sqlalchemy import select

        found = select(TaskInstance).where(
            TaskInstance.dag_id == self.dag_id,
            TaskInstance.run_id == self.run_id,
            TaskInstance.task_id == task,
        )
        return session.scalars(found).one()


def _serialized(dag: Any) -> Any:
    from airflow.serialization.serialized_objects import DagSerialization

    return DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))


def forget_runs() -> None:
    """Delete every DAG run of the session's metadata database."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        for run in session.scalars(select(DagRun)):
            session.delete(run)


def new_ledger(path: Path) -> Path:
    """Make a migrated, empty ledger."""
    from include.budget.migrations import migrate
    from include.budget.store import connect

    path.parent.mkdir(parents=True, exist_ok=True)
    migrate(connect(f"sqlite:///{path}", create=True))
    return path


def all_ok(run: Run, *, but: Iterable[str] = ()) -> bool:
    """Tell whether every stage but the named ones succeeded."""
    return all(state == "success" for name, state in run.states().items() if name not in but)
