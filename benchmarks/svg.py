"""Plots as SVG text: lines over a number, and bars. Nothing but the standard library.

Colours are readable on white and on dark pages; the text takes the colour of the page where that is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

COLOURS = ("#d1495b", "#2e86ab", "#e0a030", "#5b8c5a", "#8a6bbe", "#7a7a7a", "#c06c3e", "#3aa6a0", "#a3a847")
STYLE = (
    "text{font-family:system-ui,sans-serif;font-size:12px;fill:#333}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}}"
    ".title{font-size:14px;font-weight:600}.grid{stroke:#999;stroke-opacity:.35}.line{fill:none;stroke-width:2}"
)
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 52, 48


@dataclass
class Drawing:
    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def add(self, tag: str, content: str | None = None, **attributes: float | str) -> None:
        named = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
        words = "".join(f" {name}={quoteattr(_short(value))}" for name, value in named)
        self.parts.append(f"<{tag}{words}/>" if content is None else f"<{tag}{words}>{escape(content)}</{tag}>")

    def text(self, title: str) -> str:
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
                f'width="{self.width:g}" height="{self.height:g}" role="img">',
                f"<title>{escape(title)}</title>",
                f"<style>{STYLE}</style>",
                *self.parts,
                "</svg>\n",
            ]
        )


def lines(
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    colours: Mapping[str, str] | None = None,
    width: float = 640,
    height: float = 360,
) -> str:
    """One line per series, with a mark at each point."""
    drawn = {name: sorted(points) for name, points in series.items() if points}
    xs = [x for points in drawn.values() for x, _ in points]
    ys = [y for points in drawn.values() for _, y in points]
    drawing = Drawing(width, height)
    drawing.add("text", title, x=LEFT, y=20, class_="title")
    if not xs:
        drawing.add("text", "nothing was measured", x=LEFT, y=TOP + 20)
        return drawing.text(title)
    x_axis = _Axis.of(xs, LEFT, width - RIGHT, log=log_x, from_zero=False)
    y_axis = _Axis.of(ys, height - BOTTOM, TOP, log=log_y, from_zero=True)
    for value in y_axis.ticks():
        y = y_axis.place(value)
        drawing.add("line", x1=LEFT, x2=width - RIGHT, y1=y, y2=y, class_="grid")
        drawing.add("text", _number(value), x=LEFT - 8, y=y + 4, text_anchor="end")
    for value in sorted(set(xs)):
        drawing.add("text", _number(value), x=x_axis.place(value), y=height - BOTTOM + 18, text_anchor="middle")
    drawing.add("text", x_label, x=(LEFT + width - RIGHT) / 2, y=height - 10, text_anchor="middle")
    drawing.add("text", y_label, x=LEFT, y=TOP - 6, text_anchor="start")
    for number, (name, points) in enumerate(drawn.items()):
        colour = (colours or {}).get(name, COLOURS[number % len(COLOURS)])
        places = [(x_axis.place(x), y_axis.place(y)) for x, y in points]
        drawing.add("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), class_="line", stroke=colour)
        for x, y in places:
            drawing.add("circle", cx=x, cy=y, r=3.5, fill=colour)
        at = TOP + 14 + 20 * number
        drawing.add("rect", x=width - RIGHT + 14, y=at - 9, width=10, height=10, fill=colour)
        drawing.add("text", name, x=width - RIGHT + 30, y=at)
    return drawing.text(title)


def bars(
    title: str,
    groups: Mapping[str, Mapping[str, float]],
    *,
    label: str,
    colours: Mapping[str, str] | None = None,
    width: float = 720,
) -> str:
    """Horizontal bars: a group per row of the table, a bar per series."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    shades = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)} | dict(colours or {})
    thick, gap, left = 12, 12, 190
    height = TOP + sum(thick * len(group) + gap for group in groups.values()) + BOTTOM + 20
    drawing = Drawing(width, height)
    drawing.add("text", title, x=16, y=20, class_="title")
    values = [value for group in groups.values() for value in group.values()]
    axis = _Axis.of(values or [1.0], left, width - 60, log=False, from_zero=True)
    bottom = height - BOTTOM - 20
    for value in axis.ticks():
        x = axis.place(value)
        drawing.add("line", x1=x, x2=x, y1=TOP, y2=bottom, class_="grid")
        drawing.add("text", _number(value), x=x, y=bottom + 16, text_anchor="middle")
    y: float = TOP + gap / 2
    for name, group in groups.items():
        drawing.add("text", name, x=left - 8, y=y + thick * len(group) / 2 + 4, text_anchor="end")
        for series, value in group.items():
            length = axis.place(value) - left
            drawing.add("rect", x=left, y=y, width=length, height=thick - 2, fill=shades[series])
            drawing.add("text", _number(value), x=axis.place(value) + 4, y=y + thick - 2)
            y += thick
        y += gap
    drawing.add("text", label, x=left, y=bottom + 34)
    x = left
    for series in names:
        drawing.add("rect", x=x, y=height - 18, width=10, height=10, fill=shades[series])
        drawing.add("text", series, x=x + 14, y=height - 9)
        x += 34 + 7 * len(series)
    return drawing.text(title)


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    begin: float
    end: float
    log: bool

    @classmethod
    def of(cls, values: Sequence[float], begin: float, end: float, *, log: bool, from_zero: bool) -> _Axis:
        low, high = min(values), max(values)
        if log:
            # Whole powers of ten on the axis of values; on the other one the first and the last value.
            low, high = (
                (10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high))) if from_zero else (low, high)
            )
        elif from_zero:
            low, high = 0.0, _steps(high)[-1]
        if low == high:
            low, high = (low / 2, high * 2) if log else (low - 1, high + 1)
        return cls(low, high, begin, end, log)

    def place(self, value: float) -> float:
        part = (
            (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
            if self.log
            else (value - self.low) / (self.high - self.low)
        )
        return self.begin + part * (self.end - self.begin)

    def ticks(self) -> Iterator[float]:
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            yield from (10.0**power for power in range(first, last + 1))
        else:
            yield from (value for value in _steps(self.high) if self.low <= value <= self.high * 1.0001)


def _steps(high: float) -> list[float]:
    """Round numbers from 0 to the first one that is not below `high`."""
    rough = max(high, 1e-12) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [step * number for number in range(math.ceil(high / step - 1e-9) + 1)]


def _number(value: float) -> str:
    if value and abs(value) < 0.01:
        return f"{value:.2g}"
    return f"{value:.2f}".rstrip("0").rstrip(".") if value < 100 else f"{value:g}"


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
