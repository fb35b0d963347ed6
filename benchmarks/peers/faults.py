"""What is known to be wrong with each peer, one sentence each, to be shown beside its rows.

The faults that can be measured are measured by `python -m benchmarks.peers --probes`, in the peers'
own environments; the other sentences follow from the peers' source at the pinned versions.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.catalogue import HERE, PEERS
from benchmarks.peers.environments import interpreter
from benchmarks.peers.supervise import environment


@dataclass(frozen=True)
class Fault:
    """A known fault.

    Args:
        mechanism: the mechanism that has it; empty for all of the peer's.
        probe: the script that measures it, if one does.
    """

    peer: str
    mechanism: str
    sentence: str
    probe: str = ""


SAMPLER = (
    "Rows are drawn by private-pgm 1.1, whose default gives columns with a common measured "
    "neighbour the same order of rows: columns that the model holds independent come out fully "
    "correlated."
)
FLOATS = (
    "Noise is drawn in floating point around zero and added afterwards, and selections come from "
    "numpy's Mersenne Twister: the guarantee is of idealised arithmetic."
)
FAULTS = (
    Fault(
        "baseline",
        "resampled rows",
        "Not private: real rows, drawn with replacement. It is the floor that sampling sets.",
    ),
    Fault(
        "baseline",
        "independent columns",
        "Private at the same epsilon, by our AIM told a workload of single columns; it holds no "
        "relation between columns.",
    ),
    Fault(
        "cusyn",
        "aim, private-pgm backend",
        "Compiles anew for every set of cliques, which is most of its time; for reference only.",
    ),
    Fault("dpmm", "", FLOATS),
    Fault(
        "dpmm",
        "privbayes",
        "Its privacy claim does not hold: it selects by mutual information divided by entropies, "
        "which one row can change by 1, with noise for a score that one row changes by log(n)/n.",
        "privbayes_probe",
    ),
    Fault("smartnoise", "aim", SAMPLER, "sampler_probe"),
    Fault("smartnoise", "mst", SAMPLER, "sampler_probe"),
    Fault(
        "smartnoise",
        "",
        "By default it learns the categories from the data without paying (here it is told them), "
        "and it draws exactly as many rows as the table has.",
    ),
    Fault("smartnoise", "", FLOATS),
    Fault(
        "smartnoise",
        "mst",
        "Uses the exact number of rows in its fit, which is not paid for when rows may be added "
        "or removed.",
    ),
    Fault(
        "smartnoise",
        "aim",
        "Its limit on the size of the model adds up measured tables instead of the junction "
        "tree's, so that memory is not bounded by it.",
    ),
    Fault(
        "smartnoise",
        "mwem",
        "Reads each column's range and the exact number of rows without paying, and holds the "
        "whole joint table in memory.",
    ),
    Fault("opendp", "aim", SAMPLER, "sampler_probe"),
    Fault(
        "opendp",
        "mst",
        "Refuses its own budget where float rounding makes the parts a last digit more than the "
        "whole.",
    ),
)
PROBE_FIELDS = ("peer", "probe", "value", "should_be", "version", "date")


def faults_of(peer: str, mechanism: str) -> list[Fault]:
    """List what is known of one mechanism, its own faults before its peer's."""
    own = [fault for fault in FAULTS if (fault.peer, fault.mechanism) == (peer, mechanism)]
    return own + [fault for fault in FAULTS if (fault.peer, fault.mechanism) == (peer, "")]


def run_probes(out: Path) -> list[dict[str, str]]:
    """Measure the faults that have a probe and write the table."""
    wanted = sorted({(fault.peer, fault.probe) for fault in FAULTS if fault.probe})
    rows = [measure(peer, probe) for peer, probe in wanted]
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, PROBE_FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return rows


def measure(name: str, probe: str) -> dict[str, str]:
    """Run one probe in its peer's environment."""
    peer = next(peer for peer in PEERS if peer.name == name)
    command = [str(interpreter(peer)), str(HERE / "probes" / f"{probe}.py")]
    done = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True)
    said = json.loads(done.stdout.splitlines()[-1])
    return {
        "peer": name,
        "probe": probe,
        "value": f"{said['value']:.3g}",
        "should_be": said["should_be"],
        "version": peer.version,
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
    }
