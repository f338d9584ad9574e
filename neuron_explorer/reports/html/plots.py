"""Roofline and timeline, drawn by Bokeh, as the JSON that its script in the page embeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from bokeh.core.types import ID
from bokeh.embed import json_item
from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, Range1d
from bokeh.models.annotations import Label
from bokeh.plotting import figure

from neuron_explorer.reports import formats
from neuron_explorer.reports.html.facts import Facts, Row

BOUNDS: Mapping[str, tuple[str, str]] = {
    "memory": ("#2f6fd0", "circle"),
    "compute": ("#16855b", "square"),
    "overhead": ("#c2660a", "triangle"),
    "communication": ("#8250c4", "diamond"),
    "copy": ("#0a7f92", "inverted_triangle"),
    "unknown": ("#77808c", "cross"),
}
"""Colour and mark of each bound: the mark says it without colour."""
ROOF_SIZES = (7.0, 26.0)
"""Smallest and largest mark (px)."""
LANE_PX = 44
_NAME_WIDTH = 70
_TOOLS = "pan,xwheel_zoom,box_zoom,reset"


def script() -> str:
    """BokehJS without widgets, tables and WebGL."""
    text = files("bokeh").joinpath("server/static/js/bokeh.min.js").read_text("utf-8")
    # an HTML parser ends a script at this text, wherever it stands
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def items(facts: Facts) -> dict[str, Any]:
    """What to embed, by the id of the element it goes to."""
    drawn = {"roofline": roofline(facts), "timeline": timeline(facts)}
    return {
        target: json_item(plot, ID(target)) for target, plot in drawn.items() if plot is not None
    }


def roofline(facts: Facts) -> figure | None:
    """None where the chip is unknown or no kernel has both bytes and FLOPs."""
    if facts.roof is None or not facts.points:
        return None
    plot = _figure(height=420, x_axis_type="log", y_axis_type="log", tools=_TOOLS)
    plot.xaxis.axis_label = "arithmetic intensity (FLOP/byte)"
    plot.yaxis.axis_label = "achieved (FLOP/s)"
    points = [_point(row) for row in facts.points]
    _decades(plot.xaxis, [point["x"] for point in points])
    _decades(plot.yaxis, [point["y"] for point in points])
    _draw_roofs(plot, facts.roof, points)
    marks = []
    for bound in dict.fromkeys(point["bound"] for point in points):
        color, marker = BOUNDS.get(bound, BOUNDS["unknown"])
        chosen = [point for point in points if point["bound"] == bound]
        marks.append(
            plot.scatter(
                "x",
                "y",
                source=_source(chosen),
                size="size",
                marker=marker,
                color=color,
                fill_alpha=0.45,
                line_width=1.4,
                legend_label=bound,
            )
        )
    plot.add_tools(_hover(_POINT_TIPS, marks))
    plot.legend.location = "bottom_right"
    plot.legend.orientation = "horizontal"
    plot.legend.ncols = 3  # so that a phone has room for it
    plot.legend.label_text_font_size = "12px"
    plot.legend.spacing = 0
    plot.legend.click_policy = "hide"
    plot.add_layout(plot.legend[0], "below")
    return plot


def timeline(facts: Facts) -> figure | None:
    """None where nothing lasted."""
    if not facts.cells:
        return None
    lanes = list(dict.fromkeys(map(_lane, facts.cells)))
    first = facts.cells[0]["first_ns"]
    cell_ns = facts.cells[0]["cell_ns"]
    unit, name = _unit(max(row["cell"] for row in facts.cells) * cell_ns)
    tall = 92 + LANE_PX * len(lanes) + (24 if facts.steps else 0)
    plot = _figure(height=tall, tools=_TOOLS)
    plot.xaxis.axis_label = f"time since the first event ({name})"
    plot.y_range = Range1d(start=-0.1, end=len(lanes) + (0.7 if facts.steps else 0.1))
    places = {lane: len(lanes) - 1 - number for number, lane in enumerate(lanes)}
    for device in (True, False):
        chosen = [row for row in facts.cells if (row["device"] is not None) == device]
        cells = [_cell(row, places[_lane(row)], cell_ns / unit) for row in chosen]
        drawn = plot.quad(
            "left",
            "right",
            "top",
            "bottom",
            source=_source(cells),
            line_color=None,
            fill_color="#2f6fd0" if device else "#77808c",
            fill_alpha=0.85,
        )
        if cells:
            plot.add_tools(_hover(_CELL_TIPS, [drawn]))
    _draw_steps(plot, facts.steps, first, unit, len(lanes))
    plot.yaxis.ticker = FixedTicker(ticks=[place + 0.45 for place in places.values()])
    plot.yaxis.major_label_overrides = {place + 0.45: lane for lane, place in places.items()}
    plot.ygrid.visible = False
    return plot


_POINT_TIPS = [
    ("", "@name"),
    ("op", "@op"),
    ("line", "@place"),
    ("time", "@time in @events"),
    ("achieved", "@achieved at @intensity"),
    ("of its roof", "@share"),
    ("bound", "@bound"),
]
_CELL_TIPS = [("", "@lane"), ("at", "@at"), ("busy", "@busy"), ("mostly", "@name")]


def _figure(**options: Any) -> figure:
    plot = figure(
        sizing_mode="stretch_width",
        toolbar_location="above",
        active_drag=None,
        active_scroll=None,
        background_fill_alpha=0,
        border_fill_alpha=0,
        outline_line_color=None,
        min_border_right=14,
        **options,
    )
    plot.toolbar.logo = None
    plot.axis.axis_label_text_font_style = "normal"
    plot.axis.axis_label_text_font_size = "12px"
    plot.axis.major_label_text_font_size = "12px"
    plot.axis.minor_tick_line_color = None
    plot.grid.grid_line_alpha = 0.25
    return plot


def _decades(axis: Any, values: Sequence[float]) -> None:
    """Powers of ten as `100 G`, well beyond the points, since the roofs and a zoom go there."""
    low, high = math.log10(min(values)), math.log10(max(values))
    ticks = [10.0**power for power in range(math.floor(low) - 3, math.ceil(high) + 5)]
    axis.ticker = FixedTicker(ticks=ticks)
    axis.major_label_overrides = {tick: _amount(tick) for tick in ticks}


def _amount(power_of_ten: float) -> str:
    if power_of_ten < 1:
        return f"{power_of_ten:.12f}".rstrip("0")
    return formats.bytes_(power_of_ten).removesuffix("B").strip()


def _source(rows: Sequence[Mapping[str, Any]]) -> ColumnDataSource:
    names = list(rows[0]) if rows else ["left", "right", "top", "bottom"]
    return ColumnDataSource({name: [row[name] for row in rows] for name in names})


def _hover(tips: Sequence[tuple[str, str]], renderers: Sequence[Any]) -> HoverTool:
    return HoverTool(tooltips=list(tips), renderers=list(renderers), point_policy="follow_mouse")


def _point(row: Row) -> dict[str, Any]:
    rate, intensity = row["flops"] / row["time_ns"] * 1e9, row["flops"] / row["bytes"]
    small, large = ROOF_SIZES
    return {
        "x": intensity,
        "y": rate,
        "time_ns": row["time_ns"],
        "size": small,
        "largest": large,
        "name": formats.name(row["name"] or "", _NAME_WIDTH),
        "op": formats.name(row["op_name"] or "", _NAME_WIDTH),
        "place": formats.place(row["source_file"], row["source_line"], _NAME_WIDTH),
        "time": formats.duration(row["time_ns"]),
        "events": f"{formats.count(row['events'])} launches",
        "achieved": formats.flop_rate(rate),
        "intensity": f"{formats.digits(intensity)} FLOP/byte",
        "share": formats.share(row["share"]),
        "bound": row["bound"],
        "dtype": row["dtype"] or "",
    }


def _draw_roofs(plot: figure, roof: Row, points: list[dict[str, Any]]) -> None:
    """The bandwidth's slope, and the peak of each dtype that a kernel computes in."""
    longest = max(point["time_ns"] for point in points)
    for point in points:
        part = math.sqrt(point["time_ns"] / longest)
        point["size"] += (point.pop("largest") - point["size"]) * part
    used = {point["dtype"] for point in points}
    peaks = {dtype: peak for dtype, peak in roof["peaks"] if peak}
    shown = {dtype: peak for dtype, peak in peaks.items() if dtype in used} or peaks
    low = min([point["x"] for point in points]) / 3
    high = max([point["x"] for point in points] + [max(shown.values()) / roof["bandwidth"]]) * 6
    dash = "dashed" if roof["modelled"] else "solid"
    for dtype, peak in shown.items():
        ridge = peak / roof["bandwidth"]
        plot.line(
            [low, max(low, ridge), high],
            [min(low * roof["bandwidth"], peak), peak, peak],
            line_color="#77808c",
            line_width=1.5,
            line_dash=dash,
        )
        said = f"{dtype} {formats.flop_rate(peak)}"
        plot.add_layout(
            Label(
                x=high,
                y=peak,
                text=said,
                text_align="right",
                text_baseline="bottom",
                text_font_size="11px",
                name="said",
            )
        )
    plot.add_layout(
        Label(
            x=low * 1.15,
            y=low * roof["bandwidth"] * 1.5,
            text=formats.bandwidth(roof["bandwidth"]),
            text_font_size="11px",
            name="said",
        )
    )


def _lane(row: Row) -> str:
    rank = f"r{row['rank']} " if row["rank"] else ""
    if row["device"] is None:
        return formats.name(f"{rank}host {row['place']}", 24)
    return formats.name(f"{rank}{row['device']} {row['place']}", 24)


def _cell(row: Row, place: int, wide: float) -> dict[str, Any]:
    share = min(row["busy_ns"] / row["cell_ns"], 1.0)
    start = row["cell"] * row["cell_ns"]
    return {
        "left": row["cell"] * wide,
        "right": (row["cell"] + 1) * wide,
        "bottom": place,
        "top": place + 0.9 * share,
        "lane": _lane(row),
        "at": formats.duration_range(start, start + row["cell_ns"]),
        "busy": formats.share(share),
        "name": formats.name(row["name"] or "", 48),
    }


def _draw_steps(plot: figure, steps: Sequence[Row], first: int, unit: float, top: int) -> None:
    shown = [row for row in steps if row["rank"] == steps[0]["rank"]]
    for number, row in enumerate(shown):
        left, right = (row["start_ns"] - first) / unit, (row["end_ns"] - first) / unit
        alpha = 0.28 if number % 2 else 0.14
        plot.quad(
            left,
            right,
            top + 0.5,
            top + 0.1,
            fill_color="#77808c",
            fill_alpha=alpha,
            line_color=None,
        )
        if len(shown) <= 12:
            plot.add_layout(
                Label(
                    x=(left + right) / 2,
                    y=top + 0.3,
                    text=f"step {row['step']}",
                    text_align="center",
                    text_baseline="middle",
                    text_font_size="11px",
                    name="said",
                )
            )


def _unit(span_ns: int) -> tuple[float, str]:
    if span_ns >= 10**10:
        return 1e9, "s"
    return (1e6, "ms") if span_ns >= 10**7 else (1e3, "us")
