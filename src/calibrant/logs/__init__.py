"""Predictions that lie in files and tables, measured where they are."""

from ._applied import recalibrate_log as recalibrate_log
from ._batch import Batch as Batch
from ._files import open_log as open_log
from ._log import PredictionLog as PredictionLog
from ._sql import summarise_table as summarise_table
