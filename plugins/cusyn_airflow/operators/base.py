"""What the operators share: the ledger, the guard on errors, and for stages the request."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from cusyn_airflow.hooks.ledger import DEFAULT_CONN_ID, PrivacyLedgerHook
from cusyn_airflow.links import ChargeLink
from cusyn_airflow.requests import release_run
from include.errors import CuSynError
from include.settings import load_settings
from include.stages.run import Workplace

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.stages.run import ReleaseRun


class LedgerOperator(BaseOperator):
    """A task that works with the privacy ledger.

    Args:
        ledger_conn_id: Airflow connection of the privacy ledger.

    Privacy: whatever goes wrong, the text that leaves the task names a class and a place in the
    code, never a value: an exception raised while rows are at hand may quote them.
    """

    ui_color = "#eef4f7"

    def __init__(self, *, ledger_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ledger_conn_id = ledger_conn_id

    @abstractmethod
    def work(self, place: Workplace, context: Context) -> dict[str, str]:
        """Do the task's work; returns the small public facts that go into XCom."""

    def execute(self, context: Context) -> dict[str, str]:
        """Do the work, and let no foreign exception out with its text or its chain."""
        try:
            ledger = PrivacyLedgerHook(self.ledger_conn_id).get_ledger()
            return self.work(Workplace(load_settings(), ledger), context)
        except AirflowException:  # a skip or a failure that the task itself decided on
            raise
        except CuSynError as error:
            kind = AirflowException if error.retry_helps else AirflowFailException
            fault = kind(str(error))
        except Exception as error:
            fault = AirflowException(
                f"{self.task_id} stopped: {type(error).__name__} {_where(error)}"
            )
        # Airflow wraps what is raised in a traceback; the plain sentence stands before it.
        self.log.error("%s: %s", self.task_id, fault)
        # Raised here, outside the handlers, so that no chained exception follows it into the log.
        raise fault


class ReleaseOperator(LedgerOperator):
    """A stage of a release.

    Args:
        request: what is asked: `{"file": ..., "period": ...}` for a release file, or the fields of
            the manual form; templated.

    Privacy: as for `LedgerOperator`.
    """

    template_fields: Sequence[str] = ("request",)
    operator_extra_links = (ChargeLink(),)

    def __init__(self, *, request: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.request = request
        self.charge_id: str | None = None  # set by the stage, for the link

    @abstractmethod
    def stage(self, run: ReleaseRun, place: Workplace, context: Context) -> dict[str, str]:
        """Do the stage's work; returns the small public facts that go into XCom."""

    def work(self, place: Workplace, context: Context) -> dict[str, str]:
        """Read the request as it stands now, and do the stage's work."""
        return self.stage(release_run(self.request, context), place, context)


def loaded_snapshot(context: Context) -> str:
    """Return the snapshot that `load` named.

    Raises:
        CuSynError: `load` has not run, whatever colour it shows, or was mapped.
    """
    loaded = context["ti"].xcom_pull(task_ids="load")
    if not loaded:
        raise CuSynError("load has named no snapshot (was it marked by hand?); clear it")
    if not isinstance(loaded, Mapping):
        raise CuSynError(
            "load was mapped with expand(), which the stages do not support; give each release a "
            "file, or a DAG of its own stages"
        )
    return str(loaded["snapshot_id"])


def _where(error: Exception) -> str:
    """Name the innermost place of our own code, like `in include/data/encode.py:88`."""
    place, step = "", error.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        for room in ("/include/", "/cusyn_airflow/"):
            if room in name:
                place = f"in {room.strip('/')}/{name.rsplit(room, 1)[1]}:{step.tb_lineno}"
        step = step.tb_next
    return place
