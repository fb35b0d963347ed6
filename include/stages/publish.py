"""publish: the package where its readers look, its manifest last, then the ledger's entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from include.errors import CuSynError
from include.stages import facts
from include.stages.approval import require_approval
from include.stages.asked import require_as_asked
from include.stages.beforehand import require_destination
from include.stages.desk import Desk
from include.stages.ledger import signer_of, witness
from include.stages.run import ReleaseRun, Workplace, paid_charge
from include.stages.stated import require_report, require_stated, stated_report
from include.stages.words import withdrawn_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from include.budget.models import Charge
    from include.connections import S3Parameters
    from include.publishing.package import BuiltPackage


@dataclass(frozen=True)
class PublishedRelease:
    """A release its readers can see.

    Privacy: post-processing.
    """

    charge_id: str
    release_id: str
    uri: str
    words: str


def publish(
    run: ReleaseRun, place: Workplace, *, s3: S3Parameters | None = None
) -> PublishedRelease:
    """Publish the release of a sealed charge; repeated, return the release it already has.

    Args:
        run: what is released.
        place: where it is done.
        s3: how to reach the object store, for an s3:// address.

    Raises:
        DeclarationChanged: a file says something else now than was asked.
        DigestMismatch: the table or the report is not the one the journal names.
        ConfigError: the destination is a folder that readers must not see.
        CuSynError: the charge is not sealed, or the destination refused; a retry continues.

    Privacy: post-processing.
    """
    from include.publishing.destinations import target_for

    charge = paid_charge(run, place)
    if charge.state == "published":
        return _published(charge, *_before(charge, place))
    desk = Desk(place.desk(charge.charge_id))
    judged = stated_report(place, charge.charge_id) is not None
    if charge.state not in ("sealed", "publishing") or not judged:
        raise CuSynError(
            f"charge {charge.charge_id} is {charge.state}: only a sealed measurement that passed "
            "quality_check is published; run the stages before this one"
        )
    require_destination(run.release, place.settings)
    _, files = require_report(place, charge, desk)
    require_approval(run, place, charge)
    require_as_asked(run, place, charge)
    package = _package(run, place, charge, desk, files)
    target = target_for(run.release.publish.uri, base=place.settings.project_root, s3=s3)
    place.ledger.begin_publishing(charge.charge_id, fence=charge.fence)
    visible = target.publish(package.path)
    done = place.ledger.publish(
        charge.charge_id,
        manifest_digest=visible.manifest_digest,
        uri=visible.uri,
        release_id=visible.release_id,
        fence=charge.fence,
    )
    witness(place)
    return _published(done, "is published")


def _package(
    run: ReleaseRun, place: Workplace, charge: Charge, desk: Desk, files: Mapping[str, bytes]
) -> BuiltPackage:
    import io

    import pandas as pd

    from include.publishing.package import PackageInput, build_package
    from include.quality.report import parse_report

    table = require_stated(place, charge, desk)[desk.table.name]
    report = parse_report(files[desk.report_json.name])
    if not report.verdict.passed:
        raise CuSynError(
            f"charge {charge.charge_id}: its quality check did not pass, so it is not published"
        )
    return build_package(
        desk.package,
        PackageInput(
            report=report,
            table=pd.read_parquet(io.BytesIO(table)),
            lineage=facts.lineage_facts(run, charge),
            signer=signer_of(place.settings),
            stated=files,
        ),
    )


def _before(charge: Charge, place: Workplace) -> tuple[str, str]:
    """Say how a release stands that was published before."""
    withdrawn = withdrawn_words(charge, place.reader)
    if not withdrawn:
        return "was published before and lies", "; nothing more is charged"
    return f"was published before and {withdrawn}; it lies", (
        "; nothing more is charged, and nothing is published again under this period: ask under a "
        "new one"
    )


def _published(charge: Charge, how: str, more: str = "") -> PublishedRelease:
    assert charge.release_id is not None and charge.uri is not None
    words = f"release {charge.release_id} {how} at {charge.uri} (charge {charge.charge_id}){more}."
    return PublishedRelease(charge.charge_id, charge.release_id, charge.uri, words)
