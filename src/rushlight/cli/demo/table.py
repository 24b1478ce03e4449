"""The demo's figures as a table for the terminal."""

from typing import Any

__all__ = ["render"]

COLUMNS = ("", "peak memory", "of arrays", "parameters", "gradients", "Adam's state", "per step", "accuracy")


def render(results: list[dict[str, Any]]) -> str:
    """The table of all runs, and two sentences on what it says."""
    rows = [COLUMNS, *map(_row, results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, "─" * len(lines[0]))
    return "\n".join(["", *lines, "", _verdict(results)])


def _row(result: dict[str, Any]) -> tuple[str, ...]:
    return (
        result["name"],
        megabytes(result["peak"]),
        "not counted" if result["arrays"] is None else megabytes(result["arrays"]),
        megabytes(result["parameters"]),
        megabytes(result["gradients"]),
        megabytes(result["state"]),
        f"{1000 * result['seconds_per_step']:.1f} ms",
        f"{100 * result['accuracy']:.1f} %",
    )


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    first, *rest = (f"{cells[0]:<{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:])))
    return "   ".join((first, *rest))


def megabytes(size: float) -> str:
    """A number of bytes in MB (10^6), one decimal.

    >>> megabytes(38_012_345)
    '38.0 MB'
    """
    return f"{size / 1e6:.1f} MB"


def _verdict(results: list[dict[str, Any]]) -> str:
    by_way = {result["way"]: result for result in results}
    plain, fused, bound = by_way["adam"], by_way["fused"], by_way["budget"]
    saved = plain["peak"] - fused["peak"]
    columns = zip(*(result["losses"] for result in results))
    apart = max(max(column) - min(column) for column in columns)
    counted = ""
    if plain["arrays"] is not None and fused["arrays"] is not None:
        counted = f"Counted, its arrays peak {plain['arrays'] - fused['arrays']:,} bytes lower: gradients are {plain['gradients']:,} bytes.\n"
    return (
        f"Adam in backward peaks {megabytes(saved)} lower ({100 * saved / plain['peak']:.0f} %); the gradients that it "
        f"never holds together are {megabytes(plain['gradients'])}.\n{counted}"
        f"{bound['name']}: {megabytes(plain['peak'] - bound['peak'])} lower ({100 * (1 - bound['peak'] / plain['peak']):.0f} %).\n"
        f"The losses of all {len(plain['losses'])} steps agree to {apart:.1e}."
    )
