"""A short training run of a small causal language model, with and without kernels.

`python benchmarks/language_model.py [--device cuda|cpu] [--steps 120] [--out FILE.csv]`

The text is what documentation the machine has: files under /usr/share/doc and the docstrings of
Python's own library, cut into pieces by a byte-pair encoding that is learnt from it here. The model
is built from a configuration, trained in bf16 autocast on NLL + root of ESD.

The same run four times, from the same weights on the same batches: by the definitions, by the
definitions of logits that are not rounded to bf16, by the kernels, and with the last layer fused.
The second is the yardstick: it shows what that rounding alone does to the curve, and the others
coincide with the first when they are no further from it.
"""

import argparse
import ast
import gzip
import sysconfig
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, cast

import torch
from record import RESULTS, Row, circumstances, write
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

from calibrant import LinearPenalised, Penalised, esd, kernels, nll, rooted, top_label

YARDSTICK, DEFINITION = "definition, float32 logits", "definition"
FORMS = (DEFINITION, YARDSTICK, "kernels", "fused linear")
MOST_BYTES = 4_000_000
PRICE = 1.0


def main() -> None:
    """All runs, their losses in one table, and how far apart they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/language-model.csv")
    options = parser.parse_args()
    device: str = options.device
    large = device == "cuda"
    words, rows, length = (16_384, 16, 513) if large else (512, 4, 65)
    tokens, size = pieces(words)
    print(f"{size:,} bytes of text, {len(tokens):,} pieces of {words:,} kinds", flush=True)
    losses, seconds = {}, {}
    for form in FORMS:
        start = time.perf_counter()
        losses[form] = trained(form, tokens, words, rows, length, options.steps, device)
        seconds[form] = time.perf_counter() - start
        print(f"{form:26} {seconds[form]:6.1f} s, last loss {losses[form][-1]:.4f}", flush=True)
    table = _rows(losses, size, words, rows * (length - 1), device)
    out: Path | None = options.out
    if out is None and large:
        out = RESULTS / "language-model.csv"
    if out is not None:
        write(out, table)
    _verdict(losses)


def files() -> Iterator[str]:
    """Documentation in files of its own."""
    for path in sorted(Path("/usr/share/doc").rglob("*")):
        if path.suffix not in ("", ".gz", ".html", ".md", ".rst", ".txt") or not path.is_file():
            continue
        try:
            raw = path.read_bytes()
            yield (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
        except (OSError, EOFError, UnicodeDecodeError):
            continue


def docstrings() -> Iterator[str]:
    """Documentation in Python's own library, and then in installed packages."""
    own, installed = (Path(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib"))
    apart = [path for path in sorted(own.rglob("*.py")) if "site-packages" not in path.parts]
    for path in [*apart, *sorted(installed.rglob("*.py"))]:
        try:
            tree = ast.parse(path.read_text())
        except (OSError, SyntaxError, ValueError):
            continue
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds))
        yield "\n\n".join(text for text in found if text)


def some_of(texts: Iterator[str], most: int) -> list[str]:
    """As many of them as make up so many bytes."""
    chosen: list[str] = []
    size = 0
    for text in texts:
        if size >= most:
            break
        chosen.append(text)
        size += len(text.encode())
    return chosen


def pieces(words: int) -> tuple[Tensor, int]:
    """The text as numbers below `words`, and how many bytes it has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # other people's source
        texts = some_of(files(), MOST_BYTES // 2)
        texts += some_of(docstrings(), MOST_BYTES - sum(len(text.encode()) for text in texts))
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(
        vocab_size=words, initial_alphabet=ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    ids = [piece for each in tokenizer.encode_batch(texts) for piece in each.ids]
    return torch.tensor(ids), sum(len(text.encode()) for text in texts)


def trained(
    form: str, tokens: Tensor, words: int, rows: int, length: int, steps: int, device: str
) -> list[float]:
    """The loss at each step."""
    torch.manual_seed(0)
    size, layers = (512, 6) if device == "cuda" else (32, 2)
    config = LlamaConfig(
        vocab_size=words,
        hidden_size=size,
        intermediate_size=4 * size,
        num_hidden_layers=layers,
        num_attention_heads=8,
        max_position_embeddings=length,
        tie_word_embeddings=False,
    )
    model: Any = LlamaForCausalLM(config)
    model.to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    loss_of = _objective(form, model)
    seeded = torch.Generator().manual_seed(1)
    losses: list[Tensor] = []
    choice: Literal["auto", "fused", "definition"] = "auto"
    if form in (DEFINITION, YARDSTICK):
        choice = "definition"
    elif form == "kernels" and device == "cuda":
        choice = "fused"
    with kernels.use(choice):
        for step in range(steps):
            starts = torch.randint(len(tokens) - length, (rows,), generator=seeded)
            batch = torch.stack([tokens[start : start + length] for start in starts]).to(device)
            for group in optimiser.param_groups:
                group["lr"] = 1e-3 * min(1, (step + 1) / 20) * (1 - step / steps)
            with torch.autocast(device, dtype=torch.bfloat16):
                hidden = model.model(batch[:, :-1]).last_hidden_state
                loss = loss_of(hidden, batch[:, 1:])
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()
            losses.append(loss.detach())
    return torch.stack(losses).float().tolist()


def _objective(form: str, model: Any) -> Callable[[Tensor, Tensor], Tensor]:
    calibration = top_label(rooted(esd))
    if form == "fused linear":
        fused = LinearPenalised(nll, calibration, PRICE)
        return lambda hidden, labels: fused(hidden, model.lm_head.weight, labels)
    plain = Penalised(nll, calibration, PRICE, class_dim=-1)

    def loss_of(hidden: Tensor, labels: Tensor) -> Tensor:
        if form != YARDSTICK:
            return cast(Tensor, plain(model.lm_head(hidden), labels))
        with torch.autocast(hidden.device.type, enabled=False):
            return cast(Tensor, plain(model.lm_head(hidden.float()), labels))

    return loss_of


def _rows(
    losses: dict[str, list[float]], size: int, words: int, tokens: int, device: str
) -> list[Row]:
    return [
        {
            "step": str(step),
            **{form: f"{losses[form][step]:.6f}" for form in losses},
            "text_bytes": str(size),
            "words": str(words),
            "tokens_per_step": str(tokens),
            "device": device,
        }
        | circumstances(device)
        for step in range(len(losses[DEFINITION]))
    ]


def _verdict(losses: dict[str, list[float]]) -> None:
    """How far each curve is from that of the definition, beside the yardstick."""
    truth = torch.tensor(losses[DEFINITION])
    print(f"{'form':26} {'first':>8} {'middle':>8} {'last':>8}  {'rms':>9} {'largest':>9}")
    for form, curve in losses.items():
        off = torch.tensor(curve) - truth
        rms, largest = off.square().mean().sqrt().item(), off.abs().max().item()
        first, middle, last = curve[0], curve[len(curve) // 2], curve[-1]
        print(f"{form:26} {first:8.4f} {middle:8.4f} {last:8.4f}  {rms:9.2e} {largest:9.2e}")


if __name__ == "__main__":
    main()
