"""Meta-calibration: gradients by the coefficients, the released step, and whole runs."""

import json
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import meta_worker
import numpy as np
import pytest
import torch
import two_ranks
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close
from torch.utils.data import DataLoader, TensorDataset
from training_runs import Augmented, FailingAfter, Interrupted, loader, network, same, samples

import calibrant as cal
from calibrant import ClassSmoothing, Criterion, MetaRegulariser, Predictions, UnitL2, WeightL2
from calibrant.training._meta_classifier import find_classifier

HERE = Path(__file__).parent / "golden"
EVERYTHING = Path(__file__).parents[2] / "shared" / "golden"

CLASSES, WIDTH = 3, 2
KNOWLEDGE: dict[str, cal.MetaKnowledge] = {
    "weight": WeightL2(initial=0.02),
    "unit": UnitL2(initial=0.02),
    "decay": cal.WeightDecay(initial=0.02),
    "smoothing": ClassSmoothing(initial=[0.1, 0.2, 0.05]),
}
OBJECTIVES: dict[str, Criterion] = {
    "nll": cal.nll,
    "mmce": cal.top_label(cal.mmce),
    "dece": cal.dece,
    "soft_binned_ece": cal.top_label(cal.soft_binned_ece),
    "esd": cal.top_label(cal.esd),
}
every_knowledge = pytest.mark.parametrize("knowledge", KNOWLEDGE.values(), ids=KNOWLEDGE)
every_objective = pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)

Pair = tuple[Tensor, Tensor]


def head() -> nn.Linear:
    torch.manual_seed(11)
    return nn.Linear(WIDTH, CLASSES, dtype=torch.float64)


@pytest.fixture
def batches(rng: torch.Generator) -> tuple[Pair, Pair]:
    """Features and labels to fit, and others to judge."""

    def pair(n: int) -> Pair:
        features = torch.randn(n, WIDTH, generator=rng, dtype=torch.float64)
        return features, torch.randint(CLASSES, (n,), generator=rng)

    return pair(9), pair(10)


def loss_by_definition(
    layer: nn.Linear, knowledge: cal.MetaKnowledge, coefficients: Mapping[str, Tensor], batch: Pair
) -> Tensor:
    """The regularised likelihood as the papers write it, one term at a time."""
    features, labels = batch
    logits = features @ layer.weight.T + layer.bias
    loss = torch.zeros((), dtype=logits.dtype)
    for logit, label in zip(logits, labels, strict=True):
        share = torch.zeros_like(logit)
        share[label] = 1.0
        if isinstance(knowledge, ClassSmoothing):
            eps = coefficients["smoothing"][label]
            share = (1 - eps) * share + eps / CLASSES
        loss = loss - (share * logit.log_softmax(0)).sum() / len(labels)
    for k in range(CLASSES):
        for value, place in [(layer.bias[k], ("bias", (k,)))] + [
            (layer.weight[k, j], ("weight", (k, j))) for j in range(WIDTH)
        ]:
            name, at = place
            if isinstance(knowledge, WeightL2):
                loss = loss + coefficients[name][at] * value**2
            elif isinstance(knowledge, UnitL2):
                loss = loss + coefficients["unit"][k] * value**2
            elif isinstance(knowledge, cal.WeightDecay):
                loss = loss + coefficients["decay"] * value**2
    return loss


def meta_loss_by_definition(
    layer: nn.Linear,
    knowledge: cal.MetaKnowledge,
    coefficients: Mapping[str, Tensor],
    batch: Pair,
    meta_batch: Pair,
    objective: Criterion,
    lr: float,
) -> Tensor:
    """The objective after one step of the classifier, the step written out."""
    loss = loss_by_definition(layer, knowledge, coefficients, batch)
    by_weight, by_bias = torch.autograd.grad(loss, (layer.weight, layer.bias))
    weight, bias = layer.weight - lr * by_weight, layer.bias - lr * by_bias
    return objective(Predictions(meta_batch[0] @ weight.T + bias, meta_batch[1])).detach()


@every_objective
@every_knowledge
def test_gradient_by_the_coefficients_is_a_difference_of_meta_losses(
    knowledge: cal.MetaKnowledge, objective: Criterion, batches: tuple[Pair, Pair]
) -> None:
    layer, lr, step = head(), 0.7, 1e-5
    meta = MetaRegulariser(layer, knowledge, objective=objective)
    loss, gradients = meta.gradient(*batches, lr=lr)

    def judged(coefficients: Mapping[str, Tensor]) -> Tensor:
        return meta_loss_by_definition(layer, knowledge, coefficients, *batches, objective, lr)

    assert_close(loss, judged(meta.coefficients))
    assert_close(meta.meta_loss(*batches, lr=lr).detach(), loss)
    for name, own in meta.coefficients.items():
        slope = torch.zeros_like(own)
        for i in range(own.numel()):
            ends = []
            for sign in (1, -1):
                moved = {each: part.clone() for each, part in meta.coefficients.items()}
                moved[name].view(-1)[i] += sign * step
                ends.append(judged(moved))
            slope.view(-1)[i] = (ends[0] - ends[1]) / (2 * step)
        assert slope.any()
        assert_close(gradients[name], slope, rtol=1e-5, atol=1e-9)


@every_knowledge
def test_the_penalty_is_what_the_definition_adds_to_the_likelihood(
    knowledge: cal.MetaKnowledge, batches: tuple[Pair, Pair]
) -> None:
    layer, (features, labels) = head(), batches[0]
    meta = MetaRegulariser(layer, knowledge)
    predictions = Predictions(layer(features), labels)
    total = cal.nll(predictions) + meta.penalty(predictions)
    expected = loss_by_definition(layer, knowledge, meta.coefficients, batches[0])
    assert_close(total, expected)
    assert_close(
        torch.autograd.grad(total, layer.weight), torch.autograd.grad(expected, layer.weight)
    )


@every_knowledge
def test_updates_lower_the_meta_objective_and_leave_the_network_alone(
    knowledge: cal.MetaKnowledge, batches: tuple[Pair, Pair]
) -> None:
    layer = head()
    before = {name: part.clone() for name, part in layer.state_dict().items()}
    meta = MetaRegulariser(layer, knowledge, optimiser=partial(torch.optim.Adam, lr=0.01))
    features = batches[0][0].clone().requires_grad_()
    losses = [meta.update((features, batches[0][1]), batches[1], lr=0.5).item() for _ in range(20)]
    assert losses[-1] < losses[0]
    assert same(layer.state_dict(), before)
    assert features.grad is None
    assert all(own.grad is None for own in layer.parameters())
    assert all(not own.requires_grad for own in meta.coefficients.values())


def test_smoothing_stays_between_its_limits(batches: tuple[Pair, Pair]) -> None:
    for sign in (1.0, -1.0):
        meta = MetaRegulariser(
            head(),
            ClassSmoothing(initial=0.1, highest=0.3),
            objective=lambda predictions, sign=sign: sign * cal.nll(predictions),  # type: ignore[misc]
            optimiser=partial(torch.optim.SGD, lr=1e4),
        )
        meta.update(*batches, lr=0.5)
        assert set(meta.coefficients["smoothing"].tolist()) <= {0.0, 0.3}


# --- The released code's step, leak included.


class Start(WeightL2):
    """Coefficients that begin where the recorded step found them."""

    begin: dict[str, Tensor]

    def start(self, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: self.begin[name].clone() for name in parameters}


def released_dece(predictions: Predictions, *, bins: int, ta: float, tb: float) -> Tensor:
    """Ours times what its memberships sum to: 1 and not quite 1."""
    short = (1 + bins * 1e-6) / (1 + (bins + 1) * 1e-6)
    return short * cal.dece(predictions, bins=bins, rank_temperature=ta, bin_temperature=tb)


def golden_steps(folder: Path, stem: str) -> list[tuple[dict[str, Any], dict[str, Tensor]]]:
    entries = json.loads((folder / f"{stem}.json").read_text())["entries"]
    with np.load(folder / f"{stem}.npz", allow_pickle=False) as arrays:
        return [
            (entry, {name: torch.tensor(arrays[key]) for name, key in entry["arrays"].items()})
            for entry in entries
            if entry["name"].startswith("meta_step")
        ]


@pytest.mark.parametrize(
    ("folder", "stem"), [(HERE, "meta"), (EVERYTHING, "dev")], ids=["selection", "everything"]
)
def test_a_leaking_step_is_that_of_the_authors_code(folder: Path, stem: str) -> None:
    if not folder.exists():
        pytest.skip(f"{folder} is not here")
    steps = golden_steps(folder, stem)
    assert {entry["name"] for entry, _ in steps} == {"meta_step_2021", "meta_step_head"}
    for entry, given in steps:
        assert entry["assertable"]
        assert entry["grad_assertable"]
        told = entry["params"]

        def close(
            ours: Tensor, theirs: Tensor, tolerance: Any = entry["tolerance"]["grad"]
        ) -> None:
            assert_close(ours, theirs, **tolerance)

        calibration = partial(released_dece, bins=told["M"], ta=told["ta"], tb=told["tb"])

        def objective(
            predictions: Predictions,
            calibration: Criterion = calibration,
            joint: bool = told["meta_loss"] != "DECE",
        ) -> Tensor:
            if joint:
                return cal.nll(predictions) + 0.5 * calibration(predictions)
            return calibration(predictions)

        body = nn.Linear(*given["feat_weight"].T.shape).double()
        fc = nn.Linear(*given["fc_weight"].T.shape).double()
        for name, layer in (("feat", body), ("fc", fc)):
            layer.load_state_dict({own: given[f"{name}_{own}"] for own in ("weight", "bias")})
        model = nn.Sequential(body, nn.Tanh(), fc)
        knowledge = Start(lowest=float("-inf"))
        object.__setattr__(
            knowledge, "begin", {name: given[f"omega_{name}"] for name in ("weight", "bias")}
        )
        by_body: list[Tensor] = []
        body.weight.register_post_accumulate_grad_hook(
            lambda own, kept=by_body: kept.append(own.grad.clone())
        )
        optimiser = torch.optim.SGD(
            model.parameters(),
            lr=told["lr"],
            momentum=told["momentum"],
            weight_decay=told["wd"],
        )
        history = cal.fit_meta(
            model,
            [(given["x"], given["y"])],
            [(given["x_val"], given["y_val"])],
            optimiser=optimiser,
            epochs=1,
            fit=lambda predictions: len(predictions) * cal.nll(predictions),
            meta_objective=objective,
            meta_knowledge=knowledge,
            meta_optimiser=partial(torch.optim.Adam, lr=told["adam_lr"]),
            leak=True,
            clip=told["clip"],
        )
        assert history.epochs[0].calibration == pytest.approx(
            given["meta_loss"].item(), rel=entry["tolerance"]["value"]["rtol"]
        )
        leaked = given["leaked_meta_grad_feat_weight"]
        close(by_body[0], given["base_grad_feat_weight"] + leaked)
        assert history.regulariser is not None
        for name in ("weight", "bias"):
            close(history.regulariser.coefficients[name], given[f"omega_{name}_new"])
            close(body.get_parameter(name).detach(), given[f"new_feat_{name}"])
            close(fc.get_parameter(name).detach(), given[f"new_fc_{name}"])


# --- Whole runs, against loops written out.


def convolutional() -> nn.Module:
    torch.manual_seed(7)
    layers = [nn.Unflatten(1, (1, 5)), nn.Conv1d(1, 6, 3, padding=1), nn.BatchNorm1d(6), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(2), nn.Flatten(), nn.Linear(12, 3))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "an MLP with BatchNorm": partial(network, dropout=0),
    "a small CNN": convolutional,
}


def in_order(
    n: int, batch_size: int, seed: int = 0, dtype: torch.dtype = torch.float32
) -> list[Pair]:
    inputs, labels = samples(n, seed).tensors
    return [*zip(inputs.to(dtype).split(batch_size), labels.split(batch_size), strict=True)]


def sgd(model: nn.Module, lr: float = 0.1) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)


def run(model: nn.Module, **settings: Any) -> cal.MetaHistory:
    """Five steps beside two meta batches, twice."""
    given: dict[str, Any] = {"optimiser": sgd(model), "epochs": 2} | settings
    dtype = next(model.parameters()).dtype
    return cal.fit_meta(model, in_order(60, 12, 0, dtype), in_order(20, 10, 1, dtype), **given)


def meta_calibrated_by_hand(model: nn.Sequential, *, leak: bool, lowest: float) -> list[Tensor]:
    """The released loop without torch.func: `leak` forgets to clear the gradients."""
    optimiser = sgd(model)
    fc = model[-1]
    assert isinstance(fc, nn.Linear)
    omega = [torch.zeros_like(own).requires_grad_() for own in (fc.weight, fc.bias)]
    adam = torch.optim.Adam(omega, lr=1e-3)

    def price() -> Tensor:
        return (omega[0] * fc.weight**2).sum() + (omega[1] * fc.bias**2).sum()

    train, held_out = in_order(60, 12, 0, torch.float64) * 2, in_order(20, 10, 1, torch.float64) * 5
    for (inputs, labels), (others, truth) in zip(train, held_out, strict=True):
        judged = model[:-1](others)
        logits = model(inputs)
        slopes = torch.autograd.grad(
            cross_entropy(logits, labels) + price(), (fc.weight, fc.bias), create_graph=True
        )
        weight, bias = fc.weight - 0.1 * slopes[0], fc.bias - 0.1 * slopes[1]
        optimiser.zero_grad()
        adam.zero_grad()
        cal.dece(Predictions(judged @ weight.T + bias, truth)).backward(retain_graph=True)
        adam.step()
        for own in omega:
            own.data.clamp_(min=lowest)
        if not leak:
            optimiser.zero_grad()
        (cross_entropy(logits, labels) + price()).backward()
        optimiser.step()
    return [own.detach() for own in omega]


@pytest.mark.parametrize(("leak", "lowest"), [(False, 0.0), (True, float("-inf"))])
@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_a_run_is_the_loop_written_out(
    make: Callable[[], nn.Sequential], leak: bool, lowest: float
) -> None:
    ours, by_hand = make().double(), make().double()
    history = run(ours, leak=leak, meta_knowledge=WeightL2(lowest=lowest))
    omega = meta_calibrated_by_hand(by_hand, leak=leak, lowest=lowest)
    assert_close(ours.state_dict(), by_hand.state_dict())
    assert history.regulariser is not None
    assert_close([*history.regulariser.coefficients.values()], omega)
    assert {epoch.weight for epoch in history.epochs} == {float(leak)}


def unlearning() -> dict[str, Any]:
    """Settings with which the coefficients stay where they begin."""
    return {"meta_optimiser": partial(torch.optim.SGD, lr=0.0), "batch_norm": "frozen"}


@pytest.mark.parametrize("autocast", [None, torch.bfloat16])
@pytest.mark.parametrize("leak", [False, True])
def test_the_network_descends_the_meta_objective_only_where_it_leaks(
    leak: bool, autocast: torch.dtype | None
) -> None:
    """With coefficients that stay at zero, all that could reach it is a leak."""
    plain, ours = network(dropout=0), network(dropout=0)
    cal.fit(
        plain,
        in_order(60, 12),
        objective=nn.CrossEntropyLoss(),
        optimiser=sgd(plain),
        epochs=2,
        autocast=autocast,
    )
    run(ours, leak=leak, autocast=autocast, **unlearning())
    if leak:
        assert not same(ours.state_dict(), plain.state_dict())
    else:
        close = {"rtol": 1e-3, "atol": 1e-4} if autocast else {}
        assert_close(ours.state_dict(), plain.state_dict(), **close)  # type: ignore[arg-type]


@pytest.mark.parametrize("leak", [False, True])
def test_a_step_has_one_forward_pass_more_and_a_backward_pass_only_where_it_leaks(
    leak: bool,
) -> None:
    model = network(batch_norm=False, dropout=0)
    forwards, backwards = [0], [0]

    def count(layer: nn.Module, given: Any, made: Tensor) -> None:
        def went_back(_: Tensor) -> None:
            backwards[0] += 1

        forwards[0] += 1
        if made.requires_grad:
            made.register_hook(went_back)

    model.get_submodule("0").register_forward_hook(count)
    run(model, leak=leak, epochs=1)
    assert (forwards[0], backwards[0]) == (10, 10 if leak else 5)


def test_settings_of_the_ablation_are_what_the_paper_names() -> None:
    for name, objective in (
        ("M0", nn.CrossEntropyLoss()),
        ("M1", cal.Penalised(cal.nll, cal.dece, weight=1.0)),
    ):
        plain, ours = network(dropout=0), network(dropout=0)
        loop = {"optimiser": sgd(plain), "epochs": 2}
        cal.fit(plain, in_order(60, 12), objective=objective, **loop)  # type: ignore[arg-type]
        history = run(ours, **cal.META_SETTINGS[name])
        assert_close(ours.state_dict(), plain.state_dict())
        assert history.epochs[-1].calibration is None
    named = {
        name: setting["meta_objective"]
        for name, setting in cal.META_SETTINGS.items()
        if setting["meta_objective"] is not None
    }
    assert all(cal.META_SETTINGS[name]["fit"] is cal.nll for name in named)
    expected = dict(
        zip(
            ("M2", "M3", "M4", "meta_soft_binned_ece", "meta_esd"), OBJECTIVES.values(), strict=True
        )
    )
    assert named == expected


@pytest.mark.parametrize(
    ("knowledge", "objective"),
    [(name, "dece") for name in KNOWLEDGE] + [("weight", name) for name in OBJECTIVES],
)
def test_every_objective_and_every_knowledge_can_be_trained_with(
    knowledge: str, objective: str
) -> None:
    model = network()
    kind = KNOWLEDGE[knowledge]
    history = run(model, meta_knowledge=kind, meta_objective=OBJECTIVES[objective], epochs=1)
    meta = history.regulariser
    assert meta is not None
    begun = kind.start(dict(model.get_submodule("4").named_parameters()))
    for name, own in meta.coefficients.items():
        assert own.isfinite().all()
        assert (own != begun[name]).any()
    assert all(own.isfinite().all() for own in model.parameters())


def test_the_classifier_is_found_named_or_given() -> None:
    found = []
    for which in (None, "4", "itself"):
        model = network(dropout=0)
        run(model, classifier=model.get_submodule("4") if which == "itself" else which)
        found.append(model.state_dict())
    assert same(found[0], found[1])
    assert same(found[0], found[2])


def test_the_simulated_step_has_the_learning_rate_of_the_classifier_or_its_own() -> None:
    def learnt(**settings: Any) -> Tensor:
        model = network(dropout=0)
        groups = [
            {"params": model.get_submodule("0").parameters(), "lr": 0.5},
            {"params": model.get_submodule("4").parameters(), "lr": 0.05},
        ]
        history = run(
            model,
            optimiser=torch.optim.SGD(groups),
            meta_optimiser=partial(torch.optim.SGD, lr=1.0),
            epochs=1,
            **settings,
        )
        assert history.regulariser is not None
        return history.regulariser.coefficients["weight"]

    assert torch.equal(learnt(), learnt(inner_lr=0.05))
    assert not torch.equal(learnt(), learnt(inner_lr=0.5))


def test_tokens_are_judged_without_the_ignored_ones() -> None:
    seeded = torch.Generator().manual_seed(0)
    tokens = torch.randn(12, 4, 5, generator=seeded)
    labels = torch.randint(3, (12, 4), generator=seeded)
    kept = torch.rand(12, 4, generator=seeded) < 0.7
    ignored = torch.where(kept, labels, -100)
    pairs = [(tokens[:6], ignored[:6]), (tokens[6:], ignored[6:])]
    flat = [
        (given[own], truth[own]) for (given, truth), own in zip(pairs, kept.split(6), strict=True)
    ]
    learnt = []
    for batches, settings in (
        (pairs, {"class_dim": -1, "ignore_index": -100}),
        (flat, {}),
    ):
        model = network(batch_norm=False, dropout=0)
        cal.fit_meta(model, batches[:1], batches[1:], optimiser=sgd(model), epochs=3, **settings)  # type: ignore[arg-type]
        learnt.append(model.state_dict())
    assert_close(learnt[0], learnt[1])


# --- Interruptions.


def interruptible(checkpoint: Path | None, *, fails_after: int | None = None) -> dict[str, Any]:
    """A run from fixed seeds with everything that has a state, and all it leaves behind."""
    # A run that goes on finds every generator somewhere else than the first run did.
    seed = 1 if checkpoint is None or not checkpoint.exists() else 99
    torch.manual_seed(seed)
    np.random.seed(seed)
    model = network()
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    train: Any = loader(Augmented(samples(60)), 15)
    if fails_after is not None:
        train = FailingAfter(train, fails_after)
    history = cal.fit_meta(
        model,
        train,
        loader(samples(24, 1), 8),
        optimiser=optimiser,
        epochs=2,
        lr_schedule=torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=0.02, total_steps=60),
        lr_every="step",
        validation_loader=loader(samples(40, 2), 40),
        clip=1.0,
        checkpoint=checkpoint,
        checkpoint_every=1,
    )
    assert history.regulariser is not None
    return {
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "meta": history.regulariser.state_dict(),
        "history": [str(epoch) for epoch in history.epochs],
        "next random number": torch.rand(1),
    }


def test_interrupted_at_any_step_it_ends_bit_equal(tmp_path: Path) -> None:
    uninterrupted = interruptible(None)
    for fails_after in range(1, 9):  # the first batch is read to look at the labels
        file = tmp_path / f"{fails_after}.pt"
        with pytest.raises(Interrupted):
            interruptible(file, fails_after=fails_after)
        assert file.exists() == (fails_after > 1)
        assert same(interruptible(file), uninterrupted)


def test_a_checkpoint_of_other_knowledge_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    file = tmp_path / "run.pt"
    run(network(), checkpoint=file, epochs=1)
    written, model = file.read_bytes(), network()
    before = {name: part.clone() for name, part in model.state_dict().items()}
    with pytest.raises(
        ValueError, match=r"same procedure.* by UnitL2\(initial=0\.0, lowest=0\.0\)"
    ):
        run(model, checkpoint=file, meta_knowledge=UnitL2())
    assert same(model.state_dict(), before)
    assert file.read_bytes() == written


@every_knowledge
def test_state_goes_from_one_regulariser_to_another(
    knowledge: cal.MetaKnowledge, batches: tuple[Pair, Pair], tmp_path: Path
) -> None:
    one, other = (MetaRegulariser(head(), knowledge) for _ in range(2))
    one.update(*batches, lr=0.5)
    torch.save(one.state_dict(), tmp_path / "meta.pt")
    other.load_state_dict(torch.load(tmp_path / "meta.pt", weights_only=True))
    for meta in (one, other):
        meta.update(*batches, lr=0.5)
    assert same(other.state_dict(), one.state_dict())
    with pytest.raises(ValueError, match=r"coefficients of the shapes .* of another classifier"):
        MetaRegulariser(nn.Linear(2, 2), WeightL2()).load_state_dict(one.state_dict())


# --- Real data.


def digits_run(data: list[TensorDataset], **setting: Any) -> tuple[Predictions, dict[str, Tensor]]:
    """A network with BatchNorm on noisy digits, and what it says of the test images."""
    torch.manual_seed(0)
    hidden = [nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU()]
    model = nn.Sequential(*hidden, nn.Linear(128, 10))
    to_fit, to_judge, test = data
    cal.fit_meta(
        model,
        loader(to_fit, 128, drop_last=True),
        loader(to_judge, 150),
        optimiser=torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4),
        epochs=20,
        **setting,
    )
    images, labels = test.tensors
    with torch.no_grad():
        return Predictions(model.eval()(images), labels), model.state_dict()


@pytest.fixture(scope="module")
def noisy_digits() -> list[TensorDataset]:
    """Nine hundred digits to fit, three hundred to meta-learn from, the rest to test on."""
    pixels, digits = load_digits(return_X_y=True)
    fixed = torch.Generator().manual_seed(2024)
    images = torch.from_numpy(pixels).float() / 16
    images += 0.35 * torch.randn(images.shape, generator=fixed)
    order = torch.randperm(len(images), generator=fixed).split([900, 300, 597])
    labels = torch.from_numpy(digits).long()
    return [TensorDataset(images[part], labels[part]) for part in order]


def test_on_noisy_digits_it_is_better_calibrated_and_as_accurate_and_resumes_exactly(
    noisy_digits: list[TensorDataset], tmp_path: Path
) -> None:
    file, earlier = tmp_path / "run.pt", tmp_path / "earlier.pt"

    def keep_a_copy(epoch: cal.Epoch) -> None:
        if epoch.number == 18:  # what the file holds now is the epoch before
            shutil.copy(file, earlier)

    plain, _ = digits_run(noisy_digits, **cal.META_SETTINGS["M0"])
    learnt, state = digits_run(noisy_digits, checkpoint=file, after_epoch=keep_a_copy)
    error = cal.top_label(cal.ece)
    assert learnt.logits.isfinite().all()
    assert error(learnt) < 0.75 * error(plain)
    assert cal.nll(learnt) < cal.nll(plain)
    assert cal.accuracy(learnt) > cal.accuracy(plain) - 0.03
    _, resumed = digits_run(noisy_digits, checkpoint=earlier)
    assert same(resumed, state)


# --- Several processes.


@pytest.fixture(scope="module")
def per_rank(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two ranks found, from one launch."""
    folder = tmp_path_factory.mktemp("ranks")
    two_ranks.launch(meta_worker.__file__, str(folder))
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


def test_ranks_learn_what_one_process_learns_from_all_their_samples(
    per_rank: list[dict[str, Any]],
) -> None:
    gradients, run = meta_worker.gradients(None), meta_worker.run(None)
    for rank in per_rank:
        assert_close(rank["gradients"], gradients)
        assert_close(rank["run"], run)
    assert same(per_rank[0]["run"], per_rank[1]["run"])


def test_a_leak_between_processes_is_refused(per_rank: list[dict[str, Any]]) -> None:
    for rank in per_rank:
        assert rank["refused"].startswith("leak must be False when several processes train")


# --- What goes wrong.


class NotFinite:
    """DECE, until a given call."""

    def __init__(self, calls: int, what: float) -> None:
        self.left, self.what = calls, what

    def __call__(self, predictions: Predictions) -> Tensor:
        self.left -= 1
        value = cal.dece(predictions)
        return value if self.left >= 0 else value * self.what


@pytest.mark.parametrize("leak", [False, True])
@pytest.mark.parametrize("what", [float("nan"), float("inf")])
def test_a_meta_objective_that_is_not_finite_stops_the_run_with_everything_as_before(
    what: float, leak: bool, tmp_path: Path
) -> None:
    steps = 7  # of ten, so that an epoch has been kept

    def stopped(objective: Criterion, file: Path) -> tuple[nn.Module, Any]:
        model = network(dropout=0)
        optimiser = sgd(model)
        with pytest.raises(
            FloatingPointError, match=r"calibration loss must be finite.* step 7 in"
        ):
            run(
                model,
                optimiser=optimiser,
                meta_objective=objective,
                leak=leak,
                checkpoint=file,
                checkpoint_every=1,
            )
        return model, optimiser

    file = tmp_path / "run.pt"
    calls = steps * (2 if leak else 1)
    model, optimiser = stopped(NotFinite(calls, what), file)
    kept = torch.load(file, weights_only=True)
    assert kept["steps"] == steps
    assert same(model.state_dict(), kept["model"])
    assert same(optimiser.state_dict()["state"], kept["optimiser"]["state"])
    assert all(own.grad is None for own in model.parameters())


def test_a_real_step_that_fails_takes_the_coefficients_back(tmp_path: Path) -> None:
    calls = [0]

    class Remembered(WeightL2):
        def start(self, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
            self.began.append(super().start(parameters))
            return self.began[-1]

        began: ClassVar[list[dict[str, Tensor]]] = []

    def fit(predictions: Predictions) -> Tensor:
        calls[0] += 1  # in each step once simulated and once for real
        return cal.nll(predictions) * (float("nan") if calls[0] == 8 else 1.0)

    file = tmp_path / "run.pt"
    with pytest.raises(FloatingPointError, match="fit loss must be finite; got nan at step 3"):
        run(
            network(),
            fit=fit,
            meta_knowledge=Remembered(),
            checkpoint=file,
            checkpoint_every=1,
        )
    (learnt,) = Remembered.began
    assert same(learnt, torch.load(file, weights_only=True)["meta"]["coefficients"])
    assert learnt["weight"].any()


@pytest.mark.parametrize("what", [float("nan"), float("inf")])
def test_an_update_that_is_not_finite_is_refused_and_teaches_nothing(
    what: float, batches: tuple[Pair, Pair]
) -> None:
    meta = MetaRegulariser(head())
    meta.update(*batches, lr=0.5)
    before = {name: own.clone() for name, own in meta.coefficients.items()}
    spoilt = batches[1][0].clone()
    spoilt[0, 0] = what
    with pytest.raises(FloatingPointError, match=r"must be finite.*coefficients are as they were"):
        meta.update(batches[0], (spoilt, batches[1][1]), lr=0.5)
    assert same(meta.coefficients, before)


def cracked(predictions: Predictions) -> Tensor:
    """A finite value whose gradient is not."""
    return cal.dece(predictions) + (0 * predictions.confidence.sum()).sqrt()


def test_a_gradient_that_is_not_finite_is_refused_though_the_value_is(
    batches: tuple[Pair, Pair],
) -> None:
    meta = MetaRegulariser(head(), objective=cracked)
    with pytest.raises(FloatingPointError, match="the meta-objective and its gradient must be"):
        meta.update(*batches, lr=0.5)
    assert not meta.coefficients["weight"].any()
    with pytest.raises(FloatingPointError, match="calibration loss must be finite; got nan"):
        run(network(), meta_objective=cracked)


def headless() -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (5, 1)), nn.Conv1d(5, 3, 1), nn.Flatten())


def frozen() -> nn.Module:
    model = network()
    model.get_submodule("4").requires_grad_(False)
    return model


def rescaled() -> nn.Module:
    return nn.Sequential(network(), nn.Softplus())


BAD: dict[str, tuple[Callable[[], nn.Module], dict[str, Any], str]] = {
    "no Linear": (headless, {}, "model must have a Linear layer to be its classifier; got none"),
    "unknown name": (network, {"classifier": "fc"}, "must name a layer of model; got 'fc'. Near"),
    "foreign layer": (network, {"classifier": nn.Linear(8, 3)}, "a Linear that is not part of it"),
    "frozen layer": (frozen, {}, "require a gradient; got none in '4'"),
    "not the last": (network, {"classifier": "0"}, "whose output is the logits; got '0'"),
    "something after": (rescaled, {}, "whose output is the logits; got '0.4'"),
    "never called": (
        lambda: nn.Sequential(network()),
        {"classifier": "0.4", "forward": lambda model, batch: (batch[0][:, :3] * 1.0, batch[1])},
        "called once in each forward pass; got 0 calls of '0.4'",
    ),
    "smoothing of other classes": (
        network,
        {"meta_knowledge": ClassSmoothing(initial=[0.1, 0.1])},
        "one smoothing for each class of the classifier, 3 in all; got 2",
    ),
    "smoothing too strong": (
        network,
        {"meta_knowledge": ClassSmoothing(initial=0.6)},
        r"between 0 and highest, itself below 1; got 0\.6",
    ),
    "units of no class": (
        lambda: nn.Sequential(nn.Linear(5, 8), nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 3))),
        {"classifier": "1", "meta_knowledge": UnitL2()},
        "a row for each class in all its parameters",
    ),
    "knowledge by name": (network, {"meta_knowledge": "WeightL2"}, "must be a MetaKnowledge"),
    "objective by name": (network, {"meta_objective": "dece"}, "objective must be a function"),
    "objective of torch": (
        network,
        {"meta_objective": nn.CrossEntropyLoss()},
        "meta_objective must be a criterion, which takes predictions alone",
    ),
    "no step": (network, {"inner_lr": 0.0}, "inner_lr must be positive and finite; got 0"),
    "a step back": (network, {"inner_lr": -0.1}, "inner_lr must be positive and finite; got -0"),
}


@pytest.mark.parametrize(("make", "settings", "sentence"), BAD.values(), ids=BAD)
@pytest.mark.usefixtures("unchecked_types")
def test_mistakes_are_told_in_a_sentence_before_anything_changes(
    make: Callable[[], nn.Module], settings: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    model = make()
    before = {name: part.clone() for name, part in model.state_dict().items()}
    with pytest.raises((ValueError, TypeError), match=sentence):
        run(model, checkpoint=tmp_path / "run.pt", **settings)
    assert same(model.state_dict(), before)
    assert not (tmp_path / "run.pt").exists()


def test_a_meta_loader_shorter_than_one_batch_is_told_in_a_sentence() -> None:
    model = network()
    short = DataLoader(samples(9, 1), batch_size=10, drop_last=True)
    with pytest.raises(ValueError, match="meta_loader must yield at least one batch; got none"):
        cal.fit_meta(model, in_order(60, 12), short, optimiser=sgd(model), epochs=1)


def test_a_missing_value_in_the_first_meta_batch_is_not_the_classifiers_fault() -> None:
    inputs, labels = samples(20, 1).tensors
    spoilt = inputs.clone()
    spoilt[3, 0] = float("nan")
    model = network()
    before = {name: part.clone() for name, part in model.state_dict().items()}
    with pytest.raises(
        FloatingPointError, match="calibration loss must be finite; got nan at step"
    ):
        cal.fit_meta(model, in_order(60, 12), [(spoilt, labels)], optimiser=sgd(model), epochs=1)
    assert same(model.state_dict(), before)


def test_the_classifier_of_a_compiled_model_has_the_name_it_was_given() -> None:
    model = network()
    compiled: Any = torch.compile(model, backend="eager")
    assert find_classifier(compiled, None) == ("4", model.get_submodule("4"))


def test_a_checkpoint_of_another_meta_objective_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.pt"
    run(network(), checkpoint=file, epochs=1)
    with pytest.raises(ValueError, match="same meta_objective; got another: dece, and here nll"):
        run(network(), checkpoint=file, meta_objective=cal.nll)


def test_an_optimiser_without_the_classifier_is_told_in_a_sentence() -> None:
    model = network()
    body = torch.optim.SGD(model.get_submodule("0").parameters(), lr=0.1)
    with pytest.raises(ValueError, match="must hold the parameters of the classifier, '4'"):
        run(model, optimiser=body)


def test_an_objective_without_a_gradient_is_told_in_a_sentence() -> None:
    model = network()
    before = {name: part.clone() for name, part in model.state_dict().items()}
    with pytest.raises(ValueError, match="something differentiable; got one without a gradient"):
        run(model, meta_objective=cal.accuracy)
    assert same(model.state_dict(), before)


def test_smoothing_refuses_predictions_of_other_classes() -> None:
    meta = MetaRegulariser(head(), ClassSmoothing())
    with pytest.raises(ValueError, match="the 3 classes that are smoothed; got 2"):
        meta.penalty(Predictions(torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])))
