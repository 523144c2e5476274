"""Small tables of HTML, for notebooks and for pages of one table."""

from collections.abc import Sequence
from html import escape

from ._text import shown

# Greys that can be read on white and on black, and no background of its own.
_CELL = "padding:.15em .8em;border-bottom:1px solid rgba(128,128,128,.35);"
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 1rem; }}
div {{ overflow-x: auto; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def table(head: Sequence[str], body: Sequence[Sequence[str]], *, caption: str = "") -> str:
    """A table whose every cell is shown as it is, whatever it holds.

    >>> "&lt;b&gt;" in table(["row", "value"], [["<b>", "1"]])
    True
    """
    said = f"<caption style='text-align:left'>{escape(caption)}</caption>" if caption else ""
    top = "".join(_cell("th", "col", text, k) for k, text in enumerate(head))
    rows = "".join(
        "<tr>"
        + "".join(
            _cell("td" if k else "th", "" if k else "row", text, k) for k, text in enumerate(row)
        )
        + "</tr>"
        for row in body
    )
    return (
        "<div style='margin:.6em 0'>"
        "<table style='border-collapse:collapse;font-variant-numeric:tabular-nums'>"
        f"{said}<thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def paragraph(text: str) -> str:
    """A sentence, escaped.

    >>> paragraph("a < b")
    '<p>a &lt; b</p>'
    """
    return f"<p>{escape(text)}</p>"


def whole_page(title: str, parts: Sequence[str]) -> str:
    """A page that needs no other file.

    - `parts`: HTML, as the functions above give it.
    """
    return _PAGE.format(title=escape(title), body="\n".join(parts))


def _cell(kind: str, scope: str, text: str, place: int) -> str:
    side = "right" if place else "left"
    weight = "" if scope == "col" else "font-weight:normal;"
    about = f" scope='{scope}'" if scope else ""
    return (
        f"<{kind}{about} style='{_CELL}{weight}text-align:{side}'>"
        f"<bdi>{escape(shown(text))}</bdi></{kind}>"
    )
