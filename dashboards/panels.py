"""Panels in the house style: each has a title, a description, a unit and a way to the page."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from grafana_foundation_sdk.builders import common, dashboard, heatmap, stat, table, timeseries
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    LegendDisplayMode,
    LegendPlacement,
    ScaleDistribution,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.palette import ACCENT, GOOD
from dashboards.queries import PROMETHEUS, SEPARATOR, Query, from_prometheus

__all__ = ["HEIGHT", "heat", "lines", "number", "page_link", "rows"]

HEIGHT: Final = 8
_NUMBER_HEIGHT: Final = 4
_PAGE: Final = "http://${server:raw}/#/"


def page_link(page: str, run: str = "${__field.labels.run}") -> dashboard.DashboardLink:
    """Make a link to a page of a run: of the one that a line is about, if not said otherwise."""
    link = dashboard.DashboardLink("Open in Rollscope").url(f"{_PAGE}{run}/{page}")
    return link.target_blank(True)


def lines(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 8,
    page: str = "now",
    is_stacked: bool = False,
    most: float | None = None,
    colours: Mapping[str, str] | None = None,
) -> timeseries.Panel:
    """Draw lines over time, or areas on top of each other.

    Args:
        title: What it is.
        description: What it says, and what to make of it.
        unit: As Grafana names it.
        queries: One or more.
        width: Of 24 columns.
        page: Of a run, where a click on a line leads.
        is_stacked: Whether areas are put on top of each other.
        most: Where the scale ends, if that is known.
        colours: By the beginning of a line's name.
    """
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .axis_soft_min(0)
        .height(HEIGHT)
        .span(width)
        .datasource(PROMETHEUS)
        .targets([from_prometheus(query, number) for number, query in enumerate(queries)])
        .data_links([page_link(page)])
        .legend(_legend())
        .tooltip(
            common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING)
        )
        .line_width(1)
        .fill_opacity(40 if is_stacked else 8)
        # A line that is scraped every five seconds may miss a few without falling apart.
        .span_nulls(60_000)
    )
    if is_stacked:
        panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL).group("A"))
    if most is not None:
        panel.max(most)
    for colour in dict.fromkeys((colours or {}).values()):
        names = [name for name, its_colour in (colours or {}).items() if its_colour == colour]
        panel.override_by_regexp(_beginning_with(names), [_coloured(colour)])
    return panel


def number(
    title: str,
    description: str,
    unit: str,
    query: Query,
    *,
    width: int = 4,
    page: str = "now",
    limits: Sequence[tuple[float, str]] = (),
) -> stat.Panel:
    """Show the last value of each run as a number, coloured from its limits on."""
    steps = [Threshold(None, GOOD if limits else ACCENT)]
    steps += [Threshold(value, colour) for value, colour in limits]
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .height(_NUMBER_HEIGHT)
        .span(width)
        .datasource(PROMETHEUS)
        .with_target(from_prometheus(query, 0))
        .data_links([page_link(page)])
        .thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
        .color_mode(BigValueColorMode.VALUE)
        .graph_mode(BigValueGraphMode.AREA)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    )


def heat(
    title: str,
    description: str,
    unit: str,
    query: Query,
    *,
    width: int = 12,
    colours: str = "Blues",
) -> heatmap.Panel:
    """Draw the buckets of a histogram over time."""
    scale = (
        heatmap.HeatmapColorOptions()
        .mode(HeatmapColorMode.SCHEME)
        .scheme(colours)
        .scale(HeatmapColorScale.EXPONENTIAL)
        .exponent(0.5)
        .steps(64)
        .fill(ACCENT)
    )
    return (
        heatmap.Panel()
        .title(title)
        .description(description)
        .unit("short")
        .height(HEIGHT)
        .span(width)
        .datasource(PROMETHEUS)
        .with_target(from_prometheus(query, 0, PromQueryFormat.HEATMAP))
        .calculate(False)
        .color(scale)
        .y_axis(heatmap.YAxisConfig().unit(unit))
        .scale_distribution(common.ScaleDistributionConfig().type(ScaleDistribution.LINEAR))
        .show_tooltip()
        .exemplars_color(ACCENT)
    )


def rows(
    title: str,
    description: str,
    unit: str,
    query: Query,
    *columns: str,
    width: int = 12,
    link: dashboard.DashboardLink | None = None,
) -> table.Panel:
    """Show what there is now as a table of the labels that are named, and the value."""
    kept = {name: place for place, name in enumerate((*columns, "Value"))}
    return (
        table.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .height(HEIGHT)
        .span(width)
        .datasource(PROMETHEUS)
        .with_target(from_prometheus(query, 0, PromQueryFormat.TABLE))
        .with_transformation(
            DataTransformerConfig("filterFieldsByName", options={"include": {"names": [*kept]}})
        )
        .with_transformation(DataTransformerConfig("organize", options={"indexByName": kept}))
        .show_header(True)
        .data_links([link or page_link("now", "${__data.fields.run}")])
    )


def _legend() -> common.VizLegendOptions:
    return (
        common.VizLegendOptions()
        .display_mode(LegendDisplayMode.LIST)
        .placement(LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs(["lastNotNull"])
    )


def _beginning_with(names: Sequence[str]) -> str:
    return f"/^(?:{'|'.join(map(re.escape, names))})(?:{SEPARATOR}|$)/"


def _coloured(colour: str) -> DynamicConfigValue:
    value = {"mode": FieldColorModeId.FIXED, "fixedColor": colour}
    return DynamicConfigValue(id_val="color", value=value)
