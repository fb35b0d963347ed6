"""The plots of docs/evidence.md: means with one standard error, colours that everybody can tell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.evidence import mul, others, peers
from benchmarks.evidence.figures import Estimate, chosen, column, mean, results
from benchmarks.evidence.len_bgt import LABEL, interest, workload
from benchmarks.paper import downstream
from benchmarks.paper.single import EPSILONS, LENGTHS, MECHANISMS, MIDDLE, TABLES
from benchmarks.peers.catalogue import PEERS
from benchmarks.peers.catalogue import TABLES as PEER_TABLES

# Okabe and Ito's palette: told apart with every common colour blindness. Marks differ as well.
COLOURS = {"mwem_pgm": "#0072B2", "aim": "#D55E00"}
MARKS = {"plain": "o", "queries": "s", "off": "o", "dataset": "^"}
GREY = "#555555"
DODGE = 0.008
WIDE = 8
DPI = 110
Points = Sequence[tuple[float, Estimate | None]]


def draw_all(folder: Path) -> None:
    """Draw every plot into a folder."""
    import matplotlib as mpl

    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PLOTS.items():
        figure = draw()
        figure.savefig(folder / f"{name}.png", dpi=DPI, metadata={"Software": None})
        _close(figure)


def draw_len() -> Any:
    """Error on the interest queries by their number."""
    figure, panels = _panels(len(TABLES), 2)
    for axes, name in zip(panels, TABLES, strict=True):
        axes.set_xlim(LENGTHS[0] - 1, LENGTHS[-1] + 1)
        for m in MECHANISMS:
            for place, kind in enumerate(("plain", "queries")):
                points = [(n, mean(interest(name, m, "1", n)[place])) for n in LENGTHS]
                _line(axes, points, m, kind, f"{LABEL[m]}, {_kind(kind)}")
        axes.set(title=name, xlabel="interest queries L", xticks=LENGTHS)
        axes.set_ylabel("total variation, interest")
        _finish(axes)
    _legend(figure, panels)
    return figure


def draw_bgt() -> Any:
    """Error on the interest queries and on all pairs by epsilon."""
    figure, panels = _panels(2 * len(TABLES), 2)
    epsilons = sorted(EPSILONS, key=float)
    for row, name in enumerate(TABLES):
        left, right = panels[2 * row], panels[2 * row + 1]
        for axes in (left, right):
            axes.set(xscale="log", xlim=(0.07, 14))
        for m in MECHANISMS:
            for place, kind in enumerate(("plain", "queries")):
                label = f"{LABEL[m]}, {_kind(kind)}"
                of = [(float(e), mean(interest(name, m, e, MIDDLE)[place])) for e in epsilons]
                _line(left, of, m, kind, label)
                of = [(float(e), mean(workload(name, m, e, MIDDLE)[place])) for e in epsilons]
                _line(right, of, m, kind, label)
        for axes, what in ((left, "interest queries"), (right, "all pairs")):
            axes.set(title=f"{name}, {what}", xlabel="epsilon")
            axes.set_ylabel("total variation")
            axes.set_xticks([float(e) for e in epsilons], epsilons)
            _finish(axes)
    _legend(figure, panels)
    return figure


def draw_mul() -> Any:
    """Error on all pairs of each release in order, independent and with reuse."""
    ran = {row["table"] for row in results(mul.FILE)}
    names = [name for name in TABLES if name in ran] or list(TABLES)
    figure, panels = _panels(len(names) * len(mul.BY_ROUNDS), len(mul.BY_ROUNDS))
    places = [(name, rounds) for name in names for rounds in mul.BY_ROUNDS]
    for axes, (name, rounds) in zip(panels, places, strict=True):
        axes.set_xlim(0, rounds + 1)
        for m in MECHANISMS:
            for reuse, label in (("off", "independent"), ("dataset", "reuse")):
                points = [
                    (turn, mean(mul.error(name, m, rounds, reuse, "workload_rows", turn)))
                    for turn in range(1, rounds + 1)
                ]
                _line(axes, points, m, reuse, f"{LABEL[m]}, {label}")
        axes.set(title=f"{name}, {rounds} releases of epsilon {10 / rounds:.3g}")
        axes.set_xticks(range(1, rounds + 1, 1 if rounds <= MIDDLE else 2))
        axes.set(xlabel="release in order", ylabel="total variation, all pairs")
        _finish(axes)
    _legend(figure, panels)
    return figure


def draw_peers() -> Any:
    """Mean error on pairs of every maker; the floor and the baseline as lines."""
    figure, panels = _panels(len(PEER_TABLES), len(PEER_TABLES), height=4.6)
    rows = results(peers.FILE)
    for axes, name in zip(panels, PEER_TABLES, strict=True):
        bars = [
            (f"{p.name} {m.name}", p.name, peers.figures(rows, name, p.name, m.name, "tv2_mean"))
            for p in PEERS
            for m in p.mechanisms
        ][::-1]
        for at, (_, maker, found) in enumerate(bars):
            colour = {"cusyn": COLOURS["aim"], "baseline": GREY}.get(maker, COLOURS["mwem_pgm"])
            if found is None:
                axes.text(0, at, " no finished run", va="center", fontsize=7, color=GREY)
            else:
                axes.barh(at, found.mean, xerr=_bar(found), color=colour, height=0.7, capsize=2)
        axes.set_yticks(range(len(bars)), [label for label, _, _ in bars], fontsize=7)
        axes.set(title=name, xlabel="total variation of rows, mean over pairs", xlim=(0, None))
        axes.set_ylim(-0.6, len(bars) - 0.4)
        axes.grid(axis="x", alpha=0.3)
    return figure


def draw_downstream() -> Any:
    """Accuracy on real rows of classifiers trained on synthetic ones."""
    figure, panels = _panels(len(downstream.EPSILONS), 2, height=4)
    rows = results("paper_downstream.csv")
    majority = column(rows, "majority")
    for axes, epsilon in zip(panels, downstream.EPSILONS, strict=True):
        for at, name in enumerate(reversed(others.TRAINED)):
            asked = downstream.EPSILONS[0] if name == "real" else epsilon
            found = chosen(rows, trained_on=name, epsilon=asked)
            for step, model, colour, mark in (
                (0.15, "logistic", COLOURS["mwem_pgm"], "o"),
                (-0.15, "boosting", COLOURS["aim"], "s"),
            ):
                one = column(found, f"accuracy_{model}")
                if one is not None:
                    axes.errorbar(one.mean, at + step, xerr=_bar(one), fmt=mark, color=colour,
                                  capsize=3, ms=5, label=model if at == 0 else None)  # fmt: skip
        if majority is not None:
            axes.axvline(majority.mean, color=GREY, ls=":", label="majority class")
        labels = [
            others.TRAINED[name].replace(", queries", ",\nqueries") for name in others.TRAINED
        ]
        axes.set_yticks(range(len(labels)), labels[::-1], fontsize=7)
        axes.set(title=f"released at epsilon {epsilon}", xlabel="accuracy on real rows")
        axes.grid(axis="x", alpha=0.3)
    _legend(figure, panels)
    return figure


PLOTS = {
    "len": draw_len,
    "bgt": draw_bgt,
    "mul": draw_mul,
    "peers": draw_peers,
    "downstream": draw_downstream,
}


def _panels(count: int, columns: int, height: float = 3.0) -> tuple[Any, list[Any]]:
    import matplotlib.pyplot as plt

    rows = -(-count // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(4.6 * columns, height * rows), layout="constrained", squeeze=False
    )
    return figure, list(grid.flat)


def _close(figure: Any) -> None:
    import matplotlib.pyplot as plt

    plt.close(figure)


def _kind(kind: str) -> str:
    return "queries named" if kind == "queries" else "plain"


def _line(axes: Any, points: Points, mechanism: str, kind: str, label: str) -> None:
    """Draw means with one standard error; the four lines stand a little apart to be told."""
    known = [(x, one) for x, one in points if one is not None]
    if not known:
        return
    first = kind in ("plain", "off")
    aside = (DODGE if mechanism == "aim" else -DODGE) * (1 if first else 2)
    log = axes.get_xscale() == "log"
    axes.errorbar(
        [x * (1 + aside) if log else x + aside * axes.get_xlim()[1] for x, _ in known],
        [one.mean for _, one in known],
        yerr=[_bar(one) for _, one in known],
        color=COLOURS[mechanism],
        marker=MARKS[kind],
        mfc="white" if first else None,
        ls="--" if first else "-",
        capsize=3,
        ms=5,
        label=label,
    )


def _bar(one: Estimate) -> float:
    return one.error if one.seeds > 1 else 0.0


def _finish(axes: Any) -> None:
    """Scale the errors: by decades where they span several times, from zero where they do not."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    heights = [y for line in axes.get_lines() for y in line.get_ydata() if y > 0]
    axes.grid(alpha=0.3)
    if not heights:
        axes.text(0.5, 0.5, "not run", transform=axes.transAxes, ha="center", color=GREY)
        axes.set_yticks([])
    elif max(heights) > WIDE * min(heights):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)


def _legend(figure: Any, panels: list[Any]) -> None:
    """Put one legend above all panels."""
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8)
            return
