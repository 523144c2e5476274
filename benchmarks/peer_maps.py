"""Ask the authors' packages for fitted maps and keep them: `python benchmarks/peer_maps.py`.

In an environment with betacal and venn-abers. The package itself is not asked.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from betacal import BetaCalibration
from venn_abers import VennAbers

TESTS = Path(__file__).parents[1] / "tests"
sys.path.append(str(TESTS))

from peers.inputs import asked, chances  # noqa: E402

MAPS = TESTS / "peers" / "maps.json"


def main() -> None:
    """Fit both to the same 500 chances and ask them about the same eleven."""
    chance, happened = chances(500)
    beta = BetaCalibration("abm").fit(chance, happened).predict(asked())
    fitted = VennAbers()
    fitted.fit(np.stack([1 - chance, chance], axis=1), happened)
    merged, both = fitted.predict_proba(np.stack([1 - asked(), asked()], axis=1))
    said = {
        "versions": {name: version(name) for name in ("betacal", "venn-abers")},
        "beta": beta.tolist(),
        "venn_abers": merged[:, 1].tolist(),
        "venn_abers_both": both.tolist(),
    }
    MAPS.write_text(json.dumps(said, indent=1) + "\n")
    print(f"wrote {MAPS}")


if __name__ == "__main__":
    main()
