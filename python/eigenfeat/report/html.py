"""Pieces of HTML: escaped text, tables, pictures inside the page, and the template of the page."""

from __future__ import annotations

import base64
import html
import io
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Html",
    "bar",
    "cards",
    "escaped",
    "fill_page",
    "number",
    "paragraph",
    "picture",
    "table",
]


class Html(str):
    """Text that is HTML."""

    __slots__ = ()


def escaped(value: object, limit: int = 300) -> Html:
    """Escape a value for HTML."""
    if isinstance(value, Html):
        return value
    text = str(value)
    text = text if len(text) <= limit else text[: limit - 1] + "\u2026"
    return Html(html.escape(text.encode("utf-8", "replace").decode(), quote=True))


def number(value: float, sign: str = "") -> str:
    """Return a number with four digits, or with all digits before the decimal point."""
    return f"{value:{sign}{',.0f' if 1e3 <= abs(value) < 1e12 else '.4g'}}"


def paragraph(*parts: object, kind: str = "") -> Html:
    """Return a paragraph of escaped text."""
    return Html(f'<p class="{kind}">{"".join(escaped(part, 5000) for part in parts)}</p>')


def table(
    head: Sequence[object], lines: Iterable[Sequence[object]], words: Sequence[int] = (0,)
) -> Html:
    """Return a table; columns in `words` are left-aligned, the others right-aligned."""

    def cell(tag: str, place: int, value: object) -> str:
        side = "" if place in words else ' class="number"'
        return f"<{tag}{side}>{escaped(value)}</{tag}>"

    def line(tag: str, values: Sequence[object]) -> str:
        return f"<tr>{''.join(cell(tag, j, value) for j, value in enumerate(values))}</tr>"

    top = f"<thead>{line('th', head)}</thead>" if any(map(str, head)) else ""
    body = "".join(line("td", values) for values in lines)
    return Html(f'<div class="wide"><table>{top}<tbody>{body}</tbody></table></div>')


def bar(share: float, label: object) -> Html:
    """Return a bar whose width is a share in [0, 1] of its column, with a label."""
    width = 100 * min(max(share, 0.0), 1.0)
    return Html(
        f'<span class="bar"><i style="width:{width:.1f}%"></i></span>'
        f'<span class="beside">{escaped(label)}</span>'
    )


def cards(values: Iterable[tuple[str, str, str]]) -> Html:
    """Return cards with a name, a value in large type, and a note."""
    inside = "".join(
        f'<div class="card"><div class="name">{escaped(name)}</div>'
        f'<div class="value">{escaped(value)}</div><div class="note">{escaped(note)}</div></div>'
        for name, value, note in values
    )
    return Html(f'<div class="cards">{inside}</div>')


def picture(figure: Figure, caption: str) -> Html:
    """Return a Matplotlib figure as inline SVG with a caption; deterministic."""
    from matplotlib import rc_context

    file = io.BytesIO()
    with rc_context({"svg.hashsalt": "eigenfeat"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # labels may be in any script
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    data = base64.b64encode(file.getvalue()).decode()
    width = round(96 * figure.get_figwidth())
    text = escaped(caption, 2000)
    return Html(
        f'<figure><img style="max-width:min(100%,{width}px)" alt="{text}" '
        f'src="data:image/svg+xml;base64,{data}"><figcaption>{text}</figcaption></figure>'
    )


def fill_page(title: str, lead: Html, sections: Mapping[str, Html]) -> str:
    """Return the page with links to its sections; the page loads no external resources."""
    anchors = {name: re.sub(r"[^a-z0-9]+", "-", name.lower()) for name in sections}
    body = (
        f'<section id="{anchors[name]}"><h2>{escaped(name)}</h2>{content}</section>'
        for name, content in sections.items()
    )
    links = (f'<a href="#{anchor}">{escaped(name)}</a>' for name, anchor in anchors.items())
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        title=escaped(title), lead=lead, links="".join(links), sections="\n".join(body)
    )
