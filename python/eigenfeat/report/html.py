"""HTML of reports: text that is escaped, tables, pictures inside the page, and the page itself."""

from __future__ import annotations

import base64
import html
import io
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Html", "Section", "bar", "cards", "escaped", "figure", "page", "paragraph", "table"]


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


@dataclass
class Section:
    """A part of the page: a title, and what is below it."""

    title: str
    parts: list[Html] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """Name of the section in links."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def escaped(value: object, limit: int = 300) -> Html:
    """Any value as HTML in which nothing of it is markup."""
    if isinstance(value, Html):
        return value
    text = value if isinstance(value, str) else str(value)
    if len(text) > limit:
        text = text[: limit - 1] + "\u2026"
    return Html(html.escape(text.encode("utf-8", "replace").decode(), quote=True))


def paragraph(*parts: object, kind: str = "") -> Html:
    """A paragraph of escaped text."""
    inside = "".join(escaped(part, 5000) for part in parts)
    return Html(f'<p class="{kind}">{inside}</p>' if kind else f"<p>{inside}</p>")


def table(
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    words: Sequence[int] = (0,),
    kind: str = "",
) -> Html:
    """A table; columns in `words` are aligned to the left, all others to the right."""

    def cell(tag: str, place: int, value: object) -> str:
        side = "" if place in words else ' class="number"'
        return f"<{tag}{side}>{escaped(value)}</{tag}>"

    lines = ["".join(cell("td", j, value) for j, value in enumerate(row)) for row in rows]
    top = "".join(cell("th", j, value) for j, value in enumerate(head))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    head_ = f"<thead><tr>{top}</tr></thead>" if any(map(str, head)) else ""
    return Html(
        f'<div class="wide"><table class="{kind}">{head_}<tbody>{body}</tbody></table></div>'
    )


def bar(share: float, label: str = "") -> Html:
    """A bar of that share of its column, in [0, 1], and a label beside it."""
    width = 100 * min(max(share, 0.0), 1.0)
    return Html(
        f'<span class="bar"><i style="width:{width:.1f}%"></i></span>'
        f'<span class="beside">{escaped(label)}</span>'
    )


def cards(figures: Iterable[tuple[str, str, str]]) -> Html:
    """Large figures: name, value, and a word about the value."""
    inside = "".join(
        f'<div class="card"><div class="name">{escaped(name)}</div>'
        f'<div class="value">{escaped(value)}</div><div class="note">{escaped(note)}</div></div>'
        for name, value, note in figures
    )
    return Html(f'<div class="cards">{inside}</div>')


def figure(picture: Figure, caption: object, alternative: str, width: int = 0) -> Html:
    """A picture of Matplotlib's as an SVG inside the page, with a caption."""
    from matplotlib import rc_context

    file = io.BytesIO()
    with rc_context({"svg.hashsalt": "eigenfeat"}), warnings.catch_warnings():  # the same bytes
        warnings.filterwarnings("ignore", "Glyph .* missing")  # labels in any script
        picture.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    data = base64.b64encode(file.getvalue()).decode()
    most = width or round(96 * picture.get_figwidth())
    return Html(
        f'<figure><img style="max-width:min(100%,{most}px)" '
        f'src="data:image/svg+xml;base64,{data}" '
        f'alt="{escaped(alternative)}"><figcaption>{escaped(caption, 2000)}</figcaption></figure>'
    )


def page(title: str, lead: Html, sections: Sequence[Section]) -> str:
    """The whole page. It asks for nothing from anywhere: its policy forbids that."""
    links = "".join(
        f'<a href="#{section.anchor}">{escaped(section.title)}</a>' for section in sections
    )
    body = "".join(
        f'<section id="{section.anchor}"><h2>{escaped(section.title)}</h2>'
        f"{''.join(section.parts)}</section>"
        for section in sections
    )
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<header><h1>{escaped(title)}</h1>{lead}</header><nav>{links}</nav>{body}"
        "</main></body></html>\n"
    )


_STYLE = """
:root{--ink:#1c2733;--soft:#5b6875;--line:#e1e6eb;--ground:#f6f8fa;--accent:#2166ac}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);
 font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:980px;margin:0 auto;padding:28px 20px 60px}
header h1{font-size:1.75rem;line-height:1.25;margin:0 0 .35rem;overflow-wrap:anywhere}
header p{margin:.2rem 0;color:var(--soft);overflow-wrap:anywhere}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;margin:1.2rem 0;padding:.6rem 0;
 border-top:1px solid var(--line);border-bottom:1px solid var(--line);font-size:.92rem}
nav a{color:var(--accent);text-decoration:none}
nav a:hover{text-decoration:underline}
section{background:#fff;border:1px solid var(--line);border-radius:10px;
 padding:1.1rem 1.4rem 1.2rem;margin:1.1rem 0}
h2{font-size:1.2rem;margin:.1rem 0 .6rem}
p{margin:.5rem 0;max-width:76ch;overflow-wrap:anywhere}
p.soft{color:var(--soft);font-size:.93rem}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.9em}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:.8rem;
 margin:1rem 0 .2rem}
.card{background:#fff;border:1px solid var(--line);border-radius:10px;padding:.7rem .95rem}
.card .name{font-size:.85rem;color:var(--soft)}
.card .value{font-size:1.5rem;font-weight:600;line-height:1.35;font-variant-numeric:tabular-nums}
.card .note{font-size:.83rem;color:var(--soft)}
.wide{overflow-x:auto;margin:.6rem 0}
table{border-collapse:collapse;font-size:.93rem;font-variant-numeric:tabular-nums}
th{font-weight:600;text-align:left;color:var(--soft);border-bottom:1px solid var(--line)}
th,td{padding:.28rem .8rem .28rem 0;vertical-align:top;max-width:30rem;overflow-wrap:anywhere}
th{overflow-wrap:break-word}
td{border-bottom:1px solid #f0f3f5}
th.number,td.number{text-align:right;white-space:nowrap}
table.confusion{margin-bottom:.8rem;border-collapse:separate;border-spacing:2px;font-size:.88rem}
table.confusion td,table.confusion th{border:0;padding:.3rem .45rem;text-align:right;
 min-width:2.3rem;white-space:nowrap;border-radius:3px}
.bar{display:inline-block;width:9rem;height:.72em;background:#edf1f5;border-radius:3px;
 overflow:hidden;vertical-align:baseline}
.bar i{display:block;height:100%;background:var(--accent)}
.beside{margin-left:.5rem;white-space:nowrap}
figure{margin:1rem 0 .6rem}
figure img{display:block;height:auto;width:100%}
figcaption{color:var(--soft);font-size:.9rem;margin-top:.35rem;max-width:76ch}
@media (max-width:640px){main{padding:16px 10px 40px}section{padding:.8rem .9rem}
 .bar{width:5.5rem}header h1{font-size:1.4rem}}
@media print{body{background:#fff}nav{display:none}section{break-inside:avoid-page;border:0}}
"""
