"""The sections on vocabularies: what a fused last layer costs, and a language model trained."""

from collections.abc import Callable

from record import RESULTS, Row, read

LINEAR = """\
Forward and backward from bf16 hidden states and classifier, eager. *Fused linear* is
`LinearPenalised`, which never holds all the logits; *unfused* makes them and calls `Penalised`;
*three products* is the likelihood alone by our passes, with gradients found in the forward pass, as
Liger does. Memory is torch's peak beyond the inputs and their gradients. Floors: one such product
takes {product} ms, and an objective of the whole batch needs four where the likelihood needs three;
the eight passes over the logits that it takes are {passes} ms.
"""

LANGUAGE_MODEL = """\
A small causal language model, built from a configuration and trained in bf16 autocast for {steps}
steps of {tokens} tokens on NLL + root of ESD: text from the machine's own documentation, {bytes}
bytes, in {words} kinds of pieces. The same run from the same weights on the same batches, four
times. The second differs from the first in that its logits are not rounded to bf16, which is the
yardstick: how far rounding alone moves the curve. Distances are from the first curve, over steps.
"""

Setting = Callable[[Row], str]
Table = Callable[..., str]


def linear_section(setting: Setting, table: Table) -> list[str]:
    """The table of the fused last layer, where it was measured."""
    path = RESULTS / "linear-cuda.csv"
    if not path.exists():
        return []
    rows = [row for row in read(path) if row["objective"]]
    first = rows[0]
    shape = " \u00d7 ".join(f"{int(first[name]):,}" for name in ("n", "width", "classes"))
    text = LINEAR.format(product=_digits(first["product_ms"]), passes=_digits(first["passes_ms"]))
    header = ["objective", "form", "ms", "of its products", "of fused NLL", "MiB", "off by"]
    body = [
        [
            f"`{row['objective']}`",
            row["form"],
            f"{_digits(row['ms_median'])} ({_digits(row['ms_quartile_low'])} to "
            f"{_digits(row['ms_quartile_high'])})",
            f"{_digits(row['over_products'])}\u00d7",
            f"{_digits(row['over_fused_nll'])}\u00d7",
            f"{float(row['peak_mib']):,.0f}",
            f"{float(row['error']):.1e}",
        ]
        for row in rows
    ]
    title = f"## Fused with the last layer, {shape}\n"
    return [title, setting(first), text, table(header, body, left=2)]


def language_model_section(setting: Setting, table: Table) -> list[str]:
    """How the curves of a language model compare, where it was trained."""
    path = RESULTS / "language-model.csv"
    if not path.exists():
        return []
    rows = read(path)
    first, names = rows[0], list(rows[0])
    forms = names[1 : names.index("text_bytes")]
    curves = {form: [float(row[form]) for row in rows] for form in forms}
    truth = curves[forms[0]]
    text = LANGUAGE_MODEL.format(
        steps=len(rows),
        tokens=f"{int(first['tokens_per_step']):,}",
        bytes=f"{int(first['text_bytes']):,}",
        words=f"{int(first['words']):,}",
    )
    header = ["form", "first loss", "middle", "last", "rms distance", "largest"]
    body = []
    for form, curve in curves.items():
        off = [abs(mine - true) for mine, true in zip(curve, truth, strict=True)]
        rms = (sum(each**2 for each in off) / len(off)) ** 0.5
        losses = [f"{curve[step]:.4f}" for step in (0, len(curve) // 2, -1)]
        body.append([form, *losses, f"{rms:.1e}", f"{max(off):.1e}"])
    return ["## A language model\n", setting(first), text, table(header, body, left=1)]


def _digits(text: str) -> str:
    return f"{float(text):#.3g}".rstrip(".") if text else ""
