"""An interrupted run goes on as though nothing had happened."""

import random
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SubsetRandomSampler
from training_runs import (
    CALIBRATION,
    Augmented,
    FailingAfter,
    GrowingWeight,
    Interrupted,
    loader,
    network,
    same,
    samples,
)

import calibrant as cal
from calibrant.training._interleave import Interleaved
from calibrant.training._random import undisturbed

EPOCHS, STEPS = 2, 4  # of 15 samples each, of 60; the slice has 3 batches


def run(
    checkpoint: Path | None,
    schedule: str | None,
    *,
    every: int | None = 2,
    fails_after: int | None = None,
    slice_fails_after: int | None = None,
    workers: int = 0,
    epochs: int = EPOCHS,
    autocast: torch.dtype | None = None,
) -> dict[str, Any]:
    """One run from fixed seeds, and everything it leaves behind."""
    # A run that goes on finds every generator somewhere else than the first run did.
    seed = 1 if checkpoint is None or not checkpoint.exists() else 99
    torch.manual_seed(seed)
    np.random.seed(seed)
    model = network()
    weight = GrowingWeight()
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    lr_schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=0.02, total_steps=60)
    own = torch.Generator().manual_seed(seed)
    majority = loader(Augmented(samples(60)), 15, generator=own, num_workers=workers)
    sampler = SubsetRandomSampler(range(20))
    held_out: Any = torch.utils.data.DataLoader(samples(30, 1), batch_size=8, sampler=sampler)
    if slice_fails_after is not None:
        held_out = FailingAfter(held_out, slice_fails_after)
    train = majority if fails_after is None else FailingAfter(majority, fails_after)
    shared: dict[str, Any] = {
        "optimiser": optimiser,
        "epochs": epochs,
        "lr_schedule": lr_schedule,
        "lr_every": "step",
        "validation_loader": loader(samples(40, 2), 40),
        "clip": 1.0,
        "autocast": autocast,
        "checkpoint": checkpoint,
        "checkpoint_every": every,
    }
    if schedule is None:
        objective = cal.Penalised(cal.nll, CALIBRATION, weight=0.5)
        history = cal.fit(model, train, objective=objective, **shared)
    else:
        history = cal.fit_interleaved(
            model,
            train,
            held_out,
            calibration=CALIBRATION,
            weight=weight,
            schedule=schedule,  # type: ignore[arg-type]
            **shared,
        )
    return {
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "rate": lr_schedule.get_last_lr(),
        "weight": weight.value,
        "history": [str(epoch) for epoch in history.epochs],
        "best": str(history.best),
        "next random numbers": [torch.rand(1), np.random.rand()],
        "own generator": torch.rand(1, generator=own),
    }


@pytest.fixture(scope="module")
def uninterrupted() -> dict[str | None, dict[str, Any]]:
    return {schedule: run(None, schedule) for schedule in (None, "every_step", "two_phase")}


# One batch is read to look at the labels, so the run fails in the step after `fails_after - 1`.
@pytest.mark.parametrize("fails_after", range(1, 1 + EPOCHS * STEPS))
@pytest.mark.parametrize("schedule", ["every_step", "two_phase"])
def test_interrupted_at_any_step_it_ends_bit_equal(
    schedule: str,
    fails_after: int,
    tmp_path: Path,
    uninterrupted: dict[str | None, dict[str, Any]],
) -> None:
    file = tmp_path / "run.pt"
    with pytest.raises(Interrupted):
        run(file, schedule, every=1, fails_after=fails_after)
    assert file.exists() == (fails_after > 1)
    assert same(run(file, schedule), uninterrupted[schedule])


def test_the_scale_that_float16_has_found_is_kept(tmp_path: Path) -> None:
    def trained(epochs: int, file: Path | None) -> Tensor:
        torch.manual_seed(0)
        model = nn.Linear(5, 3)
        cal.fit(
            model,
            DataLoader(samples(60), batch_size=60),
            # A slope that the scaler's first scale, 65536, carries beyond float16.
            objective=lambda logits, labels: nn.functional.cross_entropy(1e2 * logits, labels),
            optimiser=torch.optim.SGD(model.parameters(), lr=1e-5),
            epochs=epochs,
            autocast=torch.float16,
            checkpoint=file,
        )
        return model.weight.detach()

    start, at_half = trained(1, None), trained(10, tmp_path / "run.pt")
    assert not torch.equal(start, at_half)  # steps that overflowed were left out, others were not
    assert torch.equal(trained(20, tmp_path / "run.pt"), trained(20, None))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_interrupted_in_mixed_precision_it_ends_bit_equal(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    whole = run(None, "every_step", autocast=dtype)
    for fails_after in (3, 6):
        file = tmp_path / f"{fails_after}.pt"
        with pytest.raises(Interrupted):
            run(file, "every_step", every=1, fails_after=fails_after, autocast=dtype)
        assert same(run(file, "every_step", autocast=dtype), whole)


@pytest.mark.parametrize("batches", [2, 3, 6])
def test_interrupted_while_it_calibrates_it_ends_bit_equal(
    batches: int, tmp_path: Path, uninterrupted: dict[str | None, dict[str, Any]]
) -> None:
    file = tmp_path / "run.pt"
    with pytest.raises(Interrupted):
        run(file, "two_phase", every=1, slice_fails_after=batches)
    assert same(run(file, "two_phase"), uninterrupted["two_phase"])


@pytest.mark.parametrize("every", [None, 2, 3])
@pytest.mark.parametrize("schedule", [None, "every_step", "two_phase"])
def test_steps_after_the_checkpoint_are_taken_again(
    schedule: str | None,
    every: int | None,
    tmp_path: Path,
    uninterrupted: dict[str | None, dict[str, Any]],
) -> None:
    file = tmp_path / "run.pt"
    for fails_after in (7, 3):  # interrupted twice, the second time while it catches up
        with pytest.raises(Interrupted):
            run(file, schedule, every=every, fails_after=fails_after)
    assert same(run(file, schedule, every=every), uninterrupted[schedule])


def test_workers_draw_the_same_augmentation_again(tmp_path: Path) -> None:
    file = tmp_path / "run.pt"
    with pytest.raises(Interrupted):
        run(file, "every_step", every=1, fails_after=6, workers=1)
    assert same(run(file, "every_step", workers=1), run(None, "every_step", workers=1))


def test_a_finished_run_is_only_read_and_may_be_prolonged(
    tmp_path: Path, uninterrupted: dict[str | None, dict[str, Any]]
) -> None:
    file = tmp_path / "run.pt"
    short = run(file, "every_step", epochs=1)
    written = file.read_bytes()
    assert run(file, "every_step", epochs=1)["history"] == short["history"]
    assert file.read_bytes() == written
    assert same(run(file, "every_step"), uninterrupted["every_step"])


def test_the_slice_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """For people who own their loop, and for a cycle longer than an epoch."""
    torch.manual_seed(0)
    pairs = cal.interleave(loader(samples(24)), loader(samples(60, 1)))
    seen = [pair for _ in range(3) for pair in pairs]
    torch.manual_seed(0)
    pairs = cal.interleave(loader(samples(24)), loader(samples(60, 1)))
    again = list(pairs)
    for pair in pairs:
        again.append(pair)
        break
    kept, randomness = pairs.state_dict(), torch.get_rng_state()
    torch.manual_seed(99)
    resumed = cal.interleave(loader(samples(24)), loader(samples(60, 1)))
    resumed.load_state_dict(kept)
    torch.set_rng_state(randomness)
    again += [*resumed, *resumed]
    assert same(again, seen)


def two_loaders() -> Interleaved:
    """Two steps an epoch, of loaders with generators of their own."""
    seeded = [torch.Generator().manual_seed(seed) for seed in (0, 1)]
    held_out = loader(samples(12, 1), 4, generator=seeded[1])
    return cal.interleave(loader(samples(24), generator=seeded[0]), held_out)


def test_a_place_holds_the_generators_of_the_loaders() -> None:
    for steps in range(3):
        pairs, resumed = two_loaders(), two_loaders()
        list(pairs)
        under_way = iter(pairs) if steps else iter(())  # at an epoch's end, or in the midst of one
        for _ in range(steps):
            next(under_way)
        resumed.load_state_dict(pairs.state_dict())
        assert same([*resumed, *resumed], [*under_way, *pairs, *([] if steps else pairs)])


class Running(nn.Module):
    """An objective that remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(1.0))

    mean: Tensor

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        loss = nn.functional.cross_entropy(logits, labels)
        self.mean.lerp_(loss.detach(), 0.5)
        return loss * self.mean


def learnt_weight(extra: nn.Parameter) -> Any:
    return cal.Penalised(cal.nll, CALIBRATION, weight=extra)  # type: ignore[arg-type]


def learnt_scale(extra: nn.Parameter) -> Any:
    return lambda logits, labels: nn.functional.cross_entropy(extra * logits, labels)


def remembering(extra: nn.Parameter) -> Any:
    return Running()


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("make", [learnt_weight, learnt_scale, remembering])
def test_an_objective_goes_on_with_what_it_has_learnt(make: Any, tmp_path: Path) -> None:
    def trained(epochs: int, file: Path | None) -> tuple[Any, ...]:
        model, extra = network(dropout=0), nn.Parameter(torch.tensor(0.5))
        objective = make(extra)
        cal.fit(
            model,
            DataLoader(samples(60), batch_size=12),
            objective=objective,
            optimiser=torch.optim.SGD([*model.parameters(), extra], lr=0.5),
            epochs=epochs,
            checkpoint=file,
        )
        known = objective.state_dict() if isinstance(objective, nn.Module) else None
        return model.state_dict(), extra.detach(), known

    trained(2, tmp_path / "run.pt")
    assert same(trained(4, tmp_path / "run.pt"), trained(4, None))


def nested(seeded: torch.Generator) -> DataLoader[Any]:
    sampler = BatchSampler(RandomSampler(range(60), generator=seeded), 15, drop_last=False)
    return DataLoader(samples(60), sampler=sampler, batch_size=None)


def in_batches(seeded: torch.Generator) -> DataLoader[Any]:
    sampler = BatchSampler(RandomSampler(range(60), generator=seeded), 15, drop_last=False)
    return DataLoader(samples(60), batch_sampler=sampler)


@pytest.mark.parametrize("make", [nested, in_batches])
def test_samplers_draw_the_same_order_again_however_deep_they_are(
    make: Any, tmp_path: Path
) -> None:
    def trained(file: Path | None, seed: int, fails_after: int = 99) -> Any:
        model = network(dropout=0)
        cal.fit(
            model,
            FailingAfter(make(torch.Generator().manual_seed(seed)), fails_after),
            objective=nn.CrossEntropyLoss(),
            optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
            epochs=2,
            checkpoint=file,
            checkpoint_every=1,
        )
        return model.state_dict()

    for fails_after in (3, 5, 7):  # in both epochs, and between them
        file = tmp_path / f"{fails_after}.pt"
        with pytest.raises(Interrupted):
            trained(file, seed=1, fails_after=fails_after)
        assert same(trained(file, seed=99), trained(None, seed=1))


def test_workers_that_outlive_an_epoch_are_refused_where_there_is_a_checkpoint(
    tmp_path: Path,
) -> None:
    model = network()
    lasting = loader(samples(60), num_workers=1, persistent_workers=True)
    with pytest.raises(ValueError, match=r"got persistent_workers=True\. Leave it out, or checkp"):
        cal.fit(
            model,
            lasting,
            objective=nn.CrossEntropyLoss(),
            optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
            epochs=1,
            checkpoint=tmp_path / "run.pt",
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", ["min", "max"])
def test_a_schedule_that_waits_for_a_plateau_goes_on_waiting(mode: Any, tmp_path: Path) -> None:
    def trained(epochs: int, file: Path | None) -> tuple[list[float], Any]:
        model, rates = network(dropout=0), []
        optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
        cal.fit(
            model,
            DataLoader(samples(60), batch_size=12),
            objective=nn.CrossEntropyLoss(),
            optimiser=optimiser,
            epochs=epochs,
            validation_loader=DataLoader(samples(40, 2), batch_size=40),
            lr_schedule=ReduceLROnPlateau(optimiser, mode=mode, patience=1, threshold=0.5),
            checkpoint=file,
            after_epoch=lambda _: rates.append(optimiser.param_groups[0]["lr"]),
        )
        return rates, model.state_dict()

    first, _ = trained(3, tmp_path / "run.pt")
    rest, resumed = trained(6, tmp_path / "run.pt")
    rates, whole = trained(6, None)
    assert [*first, *rest] == rates
    assert len(set(rates)) > 1
    assert same(resumed, whole)


class Nameless:
    """A criterion without a name: it prints where it is."""

    def __call__(self, predictions: cal.Predictions) -> Tensor:
        return cal.nll(predictions)


def test_a_criterion_is_known_again_wherever_it_is(tmp_path: Path) -> None:
    here, there = Nameless(), Nameless()
    assert repr(here) != repr(there)
    for epochs, criterion in ((1, here), (2, there)):
        model = network()
        cal.fit_interleaved(
            model,
            loader(samples(60)),
            loader(samples(20)),
            fit=criterion,
            calibration=CALIBRATION,
            weight=1.0,
            optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
            epochs=epochs,
            checkpoint=tmp_path / "run.pt",
        )


def test_another_objective_is_refused(tmp_path: Path) -> None:
    def trained(objective: Any, epochs: int) -> None:
        model = network()
        cal.fit(
            model,
            loader(samples(60)),
            objective=objective,
            optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
            epochs=epochs,
            checkpoint=tmp_path / "run.pt",
        )

    trained(cal.Penalised(cal.nll, CALIBRATION, weight=1.0), 1)
    with pytest.raises(ValueError, match=r"same objective; got another: .* 1\.0\), .* 50\.0\)"):
        trained(cal.Penalised(cal.nll, CALIBRATION, weight=50.0), 2)
    with pytest.raises(ValueError, match=r"same objective; .*, and here CrossEntropyLoss\."):
        trained(nn.CrossEntropyLoss(), 2)


def test_another_rule_of_selection_is_refused(tmp_path: Path) -> None:
    """Weights that the first rule dropped are gone, and its errors are of another measure."""

    def trained(epochs: int, selection: cal.Selection | None) -> None:
        model = network()
        cal.fit(
            model,
            loader(samples(60)),
            objective=nn.CrossEntropyLoss(),
            optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
            epochs=epochs,
            validation_loader=loader(samples(40, 2), 40),
            selection=selection,
            checkpoint=tmp_path / "run.pt",
        )

    trained(1, None)
    with pytest.raises(
        ValueError, match=r"same selection; got another: .* 1\.5 points .* 5 points"
    ):
        trained(2, cal.Selection(margin=0.05))
    trained(2, cal.Selection())


def test_another_run_is_refused_before_anything_changes(tmp_path: Path) -> None:
    file = tmp_path / "run.pt"
    run(file, "every_step", epochs=1)
    written = file.read_bytes()
    model = nn.Linear(5, 3)
    before = {name: part.clone() for name, part in model.state_dict().items()}
    settings: dict[str, Any] = {"epochs": 1, "checkpoint": file}

    def resume(optimiser: torch.optim.Optimizer, model: nn.Module) -> None:
        cal.fit_interleaved(
            model,
            loader(samples(60)),
            loader(samples(20)),
            calibration=CALIBRATION,
            weight=1.0,
            optimiser=optimiser,
            **settings,
        )

    with pytest.raises(ValueError, match="same model; got another"):
        resume(torch.optim.AdamW(model.parameters()), model)
    whole = network()
    with pytest.raises(ValueError, match=r"same optimiser; got another: \['AdamW'"):
        resume(torch.optim.SGD(whole.parameters(), lr=0.1), whole)
    with pytest.raises(ValueError, match="same procedure; got another"):
        run(file, "two_phase", epochs=1)
    assert same(before, model.state_dict())
    assert file.read_bytes() == written


def test_data_that_shrank_are_noticed(tmp_path: Path) -> None:
    pairs = cal.interleave(loader(samples(60)), loader(samples(20)))
    for step, _ in enumerate(pairs):
        if step == 3:
            break
    shrunk = cal.interleave(loader(samples(24)), loader(samples(20)))
    with pytest.raises(ValueError, match="batches read before the interruption, 4; got 2"):
        shrunk.load_state_dict(pairs.state_dict())


def test_an_epoch_under_way_is_not_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "run.pt"
    with pytest.raises(Interrupted):
        run(file, "every_step", every=1, fails_after=1 + STEPS + 2)
    with pytest.raises(ValueError, match=r"has begun, 2; got 1\. Pass epochs=2 or more"):
        run(file, "every_step", epochs=1)


def test_a_schedule_that_was_not_there_is_refused(tmp_path: Path) -> None:
    model = network()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, 1)
    settings: dict[str, Any] = {
        "objective": nn.CrossEntropyLoss(),
        "optimiser": optimiser,
        "checkpoint": tmp_path / "run.pt",
    }
    cal.fit(model, loader(samples(60)), **settings, epochs=1)
    with pytest.raises(ValueError, match="same lr_schedule; got another: None, and here StepLR"):
        cal.fit(model, loader(samples(60)), **settings, epochs=2, lr_schedule=schedule)


def test_the_learning_rate_of_the_checkpoint_is_kept(tmp_path: Path) -> None:
    def rate_after(epochs: int, lr: float) -> float:
        model = network()
        optimiser = torch.optim.SGD(model.parameters(), lr=lr)
        objective = nn.CrossEntropyLoss()
        settings: dict[str, Any] = {"optimiser": optimiser, "checkpoint": tmp_path / "run.pt"}
        cal.fit(model, loader(samples(60)), objective=objective, epochs=epochs, **settings)
        return float(optimiser.param_groups[0]["lr"])

    assert rate_after(1, lr=0.1) == 0.1
    assert rate_after(2, lr=1e-7) == 0.1


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "an empty file"),
        (b"hello", "another kind of file, or half of one"),
        (None, "another kind of file, or half of one"),
    ],
)
def test_another_file_is_named_for_what_it_is(
    content: bytes | None, found: str, tmp_path: Path
) -> None:
    file = tmp_path / "run.pt"
    if content is None:  # what is left of a checkpoint when a copy of it is interrupted
        run(file, "every_step", epochs=1)
        content = file.read_bytes()[:-100]
    file.write_bytes(content)
    with pytest.raises(ValueError, match=rf"run\.pt must be a checkpoint .*; got {found}\. Name"):
        run(file, "every_step")
    assert file.read_bytes() == content


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.pt"
    with ZipFile(file, "w") as archive:
        for name, content in (("data.pkl", "hello"), ("version", "3\n"), ("byteorder", "little")):
            archive.writestr(f"run/{name}", content)
    with pytest.raises(ValueError, match=r"must hold tensors, numbers and strings.*Name another"):
        run(file, "every_step")
    torch.save({"format": 2}, file)
    with pytest.raises(ValueError, match=r"format 3; got format 2\. Name another file"):
        run(file, "every_step")
    with pytest.raises(ValueError, match="checkpoint must be a file; got the folder"):
        run(tmp_path, "every_step")


class Code:
    """Something a stranger might put in a file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("run by the file",))


def test_a_file_of_code_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.pt"
    torch.save({"format": 3, "model": Code()}, file)
    with pytest.raises(ValueError, match="must hold tensors, numbers and strings"):
        run(file, "every_step")
    torch.save({"weights": torch.zeros(3)}, file)
    with pytest.raises(ValueError, match="must be a checkpoint of this package"):
        run(file, "every_step")
    assert capsys.readouterr().out == ""


class Unreadable(GrowingWeight):
    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value, "code": Code()}


def test_state_that_could_not_be_read_is_found_out_at_the_first_write(tmp_path: Path) -> None:
    model = network()
    file = tmp_path / "run.pt"
    with pytest.raises(ValueError, match="cannot be checkpointed"):
        cal.fit_interleaved(
            model,
            loader(samples(60)),
            loader(samples(20)),
            calibration=CALIBRATION,
            weight=Unreadable(),
            optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
            epochs=1,
            checkpoint=file,
        )
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.pt"
    run(file, "every_step", epochs=1)
    written = file.read_bytes()
    real = torch.save

    def full(state: dict[str, Any], to: Any) -> None:
        real({"part": torch.zeros(3)}, to)
        raise OSError("no space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OSError, match="no space"):
        run(file, "every_step", epochs=2)
    assert file.read_bytes() == written
    assert [each.name for each in tmp_path.iterdir()] == ["run.pt"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="in a folder that exists"):
        run(tmp_path / "absent" / "run.pt", "every_step")


def test_every_generator_is_put_back() -> None:
    own = torch.Generator()

    def drawn() -> list[Any]:
        # An odd number of normals leaves one in reserve, which is part of the state.
        normals = [random.gauss(0, 1), np.random.randn(), torch.randn(1, generator=own)]
        return [*normals, random.random(), np.random.rand(), torch.rand(1)]

    drawn()
    with undisturbed(torch.utils.data.DataLoader(samples(4), generator=own)):
        first = drawn()
    assert same(drawn(), first)


def test_nothing_is_drawn_or_changed_by_validation() -> None:
    def trained(**validation: Any) -> dict[str, Tensor]:
        model = network()
        torch.manual_seed(3)
        last: dict[str, Tensor] = {}
        cal.fit(
            model,
            loader(samples(60)),
            objective=nn.CrossEntropyLoss(),
            optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
            epochs=2,
            after_epoch=lambda _: last.update(
                {name: part.clone() for name, part in model.state_dict().items()}
            ),
            **validation,
        )
        return last

    assert same(trained(validation_loader=loader(samples(40), 10)), trained())
