"""A small language model whose confidence in the next byte is trained to be true."""

import inspect
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import calibrant as cal
from calibrant.integrations.transformers import loss_function  # +

LENGTH = 64


def passages() -> list[dict[str, torch.Tensor]]:
    """The documentation of this package, in passages of as many bytes; the last is padded."""
    text = "\n".join(inspect.getdoc(each) or "" for each in vars(cal).values() if callable(each))
    pieces = torch.tensor(list(text.encode())[: 200 * LENGTH]).split(LENGTH)
    padded = [torch.nn.functional.pad(piece, (0, LENGTH - len(piece))) for piece in pieces]
    masks = [torch.arange(LENGTH) < len(piece) for piece in pieces]
    return [
        {"input_ids": ids, "attention_mask": mask.long(), "labels": ids.where(mask, -100)}
        for ids, mask in zip(padded, masks, strict=True)
    ]


def main(epochs: float = 3, **settings: Any) -> Trainer:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=256, n_positions=LENGTH, n_embd=48, n_layer=2, n_head=2, bos_token_id=0,
        eos_token_id=0,
    )  # fmt: skip
    objective = cal.Penalised(cal.nll, cal.top_label(cal.rooted(cal.esd)), weight=1.0)  # +
    with TemporaryDirectory() as folder:
        trainer = Trainer(
            GPT2LMHeadModel(config),
            TrainingArguments(
                folder,
                num_train_epochs=epochs,
                per_device_train_batch_size=16,
                learning_rate=3e-3,
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
                use_cpu=True,
                **settings,
            ),
            train_dataset=passages(),
            compute_loss_func=loss_function(objective, causal=True),  # +
        )
        trainer.train()
    return trainer


if __name__ == "__main__":
    main()
