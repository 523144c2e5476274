"""Data sets, models, studies, runs and the store of their results."""

from ._claims import Verdict as Verdict
from ._claims import judge as judge
from ._columns import COLUMNS as COLUMNS
from ._plan import Plan as Plan
from ._plan import plan as plan
from ._render import figures_and_claims as figures_and_claims
from ._render import render as render
from ._results import write_results as write_results
from ._run_study import run_study as run_study
from ._run_trial import run_trial as run_trial
from ._runner import Engine as Engine
from ._runner import RunSettings as RunSettings
from ._runner import run_trials as run_trials
from ._store import Receipt as Receipt
from ._store import Store as Store
from ._study import Arm as Arm
from ._study import Budget as Budget
from ._study import Claim as Claim
from ._study import Column as Column
from ._study import Rule as Rule
from ._study import Stage as Stage
from ._study import Study as Study
from ._task import Task as Task
from ._task import open_task as open_task
from ._trial import Trial as Trial
from .studies import STUDIES as STUDIES
