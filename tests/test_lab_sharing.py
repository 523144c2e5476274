"""A study that several machines run through one database."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import optuna
import pytest

from calibrant.lab import STUDIES, Store, Trial, plan
from calibrant.lab._run_shared import _record
from calibrant.lab._sharing import Shared
from calibrant.lab._store import read_lines
from calibrant.lab._tuning import Tuner

TRIALS = [Trial("digits", "mlp", seed=seed) for seed in range(12)]


def shared(url: str, name: str = "study") -> Shared:
    tuner = Tuner(url)
    return Shared(tuner.optuna, tuner.storage, name)


def trials_of(name: str, url: str) -> list[optuna.trial.FrozenTrial]:
    return optuna.load_study(study_name=name, storage=Tuner(url).storage).trials


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'shared.db'}"


def test_what_one_has_taken_no_other_gets_until_it_is_given_back(url: str) -> None:
    with shared(url) as other:
        with shared(url) as one:
            assert one.take(TRIALS, 2) == TRIALS[:2]
            assert other.take(TRIALS, 1) == TRIALS[2:3]
            one.finish(TRIALS[0].identity, {"identity": TRIALS[0].identity, "seconds": 1.0})
        # The first is finished, the second was never run.
        assert other.take(TRIALS[:3], 3) == [TRIALS[1]]


def test_rows_reach_every_store_once(url: str, tmp_path: Path) -> None:
    identity = TRIALS[0].identity
    row = {"identity": identity, "seconds": 2.5, "test": {"none": {"ece20": 0.1}}}
    store = Store(tmp_path / "other")
    with shared(url) as one, shared(url) as other:
        one.take(TRIALS, 1)
        one.finish(identity, row)
        for _ in range(2):
            other.fetch(store)
    assert read_lines(tmp_path / "other" / "rows.jsonl") == [row]


def test_what_a_dead_machine_left_is_taken_over_and_its_late_row_does_no_harm(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrant.lab._sharing.DEAD", 0.4)
    dead = shared(url)  # never entered, so it gives no sign of life
    assert dead.take(TRIALS, 1) == TRIALS[:1]
    with shared(url) as other:
        assert other.take(TRIALS[:1], 1) == []
        time.sleep(0.6)
        assert other.take(TRIALS[:1], 1) == TRIALS[:1]
        dead.finish(TRIALS[0].identity, {"identity": TRIALS[0].identity, "seconds": 9.0})
        other.finish(TRIALS[0].identity, {"identity": TRIALS[0].identity, "seconds": 1.0})
    done = trials_of("study/trials", url)
    assert [(each.state.name, each.values) for each in done] == [
        ("FAIL", None),
        ("COMPLETE", [1.0]),
    ]


def test_what_a_living_machine_runs_for_long_is_left_alone(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrant.lab._sharing.DEAD", 0.5)
    monkeypatch.setattr("calibrant.lab._sharing.BEAT", 0.1)
    with shared(url) as one, shared(url) as other:
        one.take(TRIALS, 1)
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            assert other.take(TRIALS[:1], 1) == []
            time.sleep(0.1)


def test_a_value_tried_elsewhere_is_recorded_in_its_search(url: str) -> None:
    tuner, values = Tuner(url), (1.0, 2.0)
    tuner.record("search", "weight", values, 2.0, {"accuracy": 0.9, "ece20": 0.1}, "ece20")
    tuner.record("search", "weight", values, 1.0, None, "ece20")
    good, bad = trials_of("search", url)
    assert (good.params, good.value, good.user_attrs) == ({"weight": 2.0}, 0.1, {"accuracy": 0.9})
    assert (bad.params, bad.state.name) == ({"weight": 1.0}, "FAIL")


def test_a_value_whose_figures_are_null_is_recorded_as_failed(url: str) -> None:
    study = STUDIES["digits"]
    budget = study.budgets["quick"]
    current = plan("digits", study, budget, {})
    (tried,) = current.tuning.values()
    nulls = {"validation": {"none": {"accuracy": 0.1, "ece20": None}}}
    rows = {trial.identity: nulls for trial in tried}
    _record(Tuner(url), "digits", study, budget, current, tried, rows)
    told = trials_of("digits/digits/NLL + ESD/weight", url)
    assert [each.state.name for each in told] == ["FAIL", "FAIL"]


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    pytest.importorskip("psycopg")
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"postgresql://me:secret@127.0.0.1:{taken.getsockname()[1]}/lab"
        with pytest.raises(ValueError, match=r"must be the URL of a database .*me:\*\*\*@") as told:
            Tuner(address)
    assert "secret" not in str(told.value)


def test_without_its_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "psycopg"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r"pip install 'calibrant\[postgresql\]'"):
        Tuner("postgresql://me@127.0.0.1/lab")


# PostgreSQL itself


def program(name: str) -> str:
    """Where a program of PostgreSQL's is; Debian keeps them out of the way."""
    aside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    path = shutil.which(name) or (str(aside[-1]) if aside else None)
    if path is None:
        pytest.skip(f"PostgreSQL is not installed here: there is no {name}")
    return path


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server of our own with one empty database; its URL."""
    pytest.importorskip("psycopg")
    initdb, pg_ctl = program("initdb"), program("pg_ctl")
    folder = Path(tempfile.mkdtemp())
    user = "postgres" if os.geteuid() == 0 else None  # it refuses to be run by root
    if user is not None:
        try:
            shutil.chown(folder, user)
        except LookupError:
            pytest.skip("PostgreSQL cannot be run by root, and there is no user postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(*command: str) -> None:
        subprocess.run(command, user=user, cwd="/", check=True, stdout=subprocess.DEVNULL)

    data, options = str(folder / "data"), f"-p {port} -h 127.0.0.1 -k '' -F"
    try:
        run(initdb, "-D", data, "-A", "trust", "-U", "lab", "--no-sync", "--no-instructions")
        run(pg_ctl, "-D", data, "-l", str(folder / "log"), "-o", options, "-w", "start")
        try:
            yield f"postgresql://lab@127.0.0.1:{port}/postgres"
        finally:
            run(pg_ctl, "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder)


def test_machines_that_begin_at_once_share_out_every_trial(server: str) -> None:
    def machine(_: int) -> list[Trial]:
        taken: list[Trial] = []
        with shared(server) as own:  # all make the tables, and all begin with the first trial
            while more := own.take(TRIALS, 1):
                taken += more
                identity = more[0].identity
                own.finish(identity, {"identity": identity, "seconds": 0.0})
        return taken

    with ThreadPoolExecutor(4) as pool:
        dealt = list(pool.map(machine, range(4)))
    assert sorted(each.seed for own in dealt for each in own) == list(range(12))


STUDY = """
import sys
from dataclasses import replace
from calibrant.lab import STUDIES, RunSettings, run_study

study = STUDIES["digits"]
short = {**study.budgets["quick"].settings, "epochs": 1, "recalibrators": ()}
done = run_study(
    "digits", study, replace(study.budgets["quick"], settings=short),
    RunSettings(None, sys.argv[2]), storage=sys.argv[1],
)
assert not done.missing
"""


def test_two_processes_run_a_study_as_one(server: str, tmp_path: Path) -> None:
    stores = [tmp_path / "one", tmp_path / "two"]
    machines = [
        subprocess.Popen(
            [sys.executable, "-c", STUDY, server, str(store)],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for store in stores
    ]
    told = [machine.communicate()[1] for machine in machines]
    assert [machine.returncode for machine in machines] == [0, 0], told
    one, two = (Store(store).rows() for store in stores)
    assert one == two  # down to the seconds: nothing ran twice
    assert len(one) == 7
    ran = sum(line.startswith("1 of 1") for text in told for line in text.splitlines())
    assert ran == 7
    chosen = [
        json.loads(line)["value"]
        for store in stores
        for line in (store / "selections.jsonl").read_text().splitlines()
        if "setting" in json.loads(line)
    ]
    assert len(chosen) == 2
    assert chosen[0] == chosen[1]
    tried = trials_of("digits/digits/NLL + ESD/weight", server)
    assert sorted(each.params["weight"] for each in tried) == [2.0, 4.0]
