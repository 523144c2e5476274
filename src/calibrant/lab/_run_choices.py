"""What a study has chosen, on disk before anything that follows from it is tested."""

from ._plan import Plan
from ._store import Store, read_lines


def write_choices(store: Store, current: Plan) -> None:
    """Every choice the plan has made, unless it is there already."""
    key = ("study", "data", "arm", "setting")
    written = {
        tuple(line.get(part) for part in key): line.get("value")
        for line in read_lines(store.folder / "selections.jsonl")
    }
    for choice in current.choices:
        place = tuple(choice[part] for part in key)
        if written.get(place) != choice["value"]:
            store.choose("/".join(place), choice)
