"""Formulas as MathML, which browsers draw by themselves: no script, no font from elsewhere."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def mathml(latex: str, *, block: bool) -> str:
    r"""A formula as an element of a page.

    >>> mathml("a < b", block=False)[:37]
    '<math xmlns="http://www.w3.org/1998/M'
    >>> mathml(r"\nosuchthing x", block=True)
    Traceback (most recent call last):
    ...
    ValueError: a formula must use known commands; got \nosuchthing.
    """
    known = latex.strip().replace(r"\arg", r"\operatorname{arg}")
    made = convert(known, display="block" if block else "inline")
    unknown = re.search(r"<m[io]>(\\[a-zA-Z]+)</m[io]>", made)
    if unknown:
        raise ValueError(f"a formula must use known commands; got {unknown[1]}.")
    return made


def _written(translator: Any, node: nodes.Element, *, block: bool) -> None:
    try:
        translator.body.append(mathml(node.astext(), block=block))
    except Exception as wrong:
        logger.warning("%s In: %s", wrong, node.astext(), location=node)
    raise nodes.SkipNode


def visit_inline(translator: Any, node: nodes.Element) -> None:
    """Within a sentence."""
    _written(translator, node, block=False)


def visit_block(translator: Any, node: nodes.Element) -> None:
    """On a line of its own."""
    _written(translator, node, block=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
