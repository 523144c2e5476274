"""Names that people give stay on their line and in their columns."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant._text import left, right, short, short_apart, shown, width


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[31mred\x00", r"\x1b[31mred\x00"),
        ("a\u2028b\u2029c\x85", r"a\u2028b\u2029c\x85"),
        ("turned \u202eround", r"turned \u202eround"),
        ("half \ud800", r"half \ud800"),
        ("plain | name", "plain | name"),
        ("漢字 é", "漢字 é"),
        ("\u06cc\u200c\u062e", "\u06cc\u200c\u062e"),
    ],
)
def test_what_breaks_a_line_is_spelt_out(name: str, spelt: str) -> None:
    assert shown(name) == spelt


@given(st.text())
def test_any_name_is_one_line_that_can_be_written(name: str) -> None:
    line = shown(name)
    assert len(line.splitlines()) <= 1
    assert shown(line) == line
    line.encode()
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in line)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("abc", 3),
        ("漢字", 4),
        ("\uff46\uff55", 4),
        ("e\u0301", 1),
        ("한", 2),
        ("\u1112\u1161\u11ab", 2),
    ],
)
def test_wide_letters_take_two_columns_and_marks_none(text: str, columns: int) -> None:
    assert width(text) == columns


@given(st.text(), st.integers(1, 30))
def test_a_short_name_fits_and_is_the_name_where_that_fits(name: str, most: int) -> None:
    cut = short(name, most)
    assert width(cut) <= most
    assert cut == name or (width(name) > most and name.startswith(cut.removesuffix("…")))


@given(st.lists(st.text(), min_size=1), st.integers(1, 30))
def test_several_short_names_fit_too(names: list[str], most: int) -> None:
    for name, cut in zip(names, short_apart(names, most), strict=True):
        assert width(cut) <= most
        kept = cut.replace("…", "")
        assert cut == name or set(kept) <= set(name)


@pytest.mark.parametrize(
    ("names", "most", "shown"),
    [
        (["a long name 1", "a long name 2", "ece"], 9, ["a l…ame 1", "a l…ame 2", "ece"]),
        (["漢字漢字漢字上", "漢字漢字漢字下"], 8, ["漢…字上", "漢…字下"]),
        (["a long name", "b long name"], 5, ["a lo…", "b lo…"]),
        (["a long name", "a long name"], 5, ["a lo…", "a lo…"]),
    ],
)
def test_names_that_begin_alike_are_told_apart(
    names: list[str], most: int, shown: list[str]
) -> None:
    assert short_apart(names, most) == shown


def test_names_that_differ_in_the_middle_are_told_apart() -> None:
    paths = [f"/data/resnet50/seed={seed}/best_checkpoint_final.pt" for seed in (1, 2, 10, 11)]
    cut = ["…eed=1/best_c…", "…eed=2/best_c…", "…eed=10/best_…", "…eed=11/best_…"]
    assert short_apart([*paths, "ece", paths[0]], 14) == [*cut, "ece", cut[0]]
    assert short_apart(["漢字漢字上漢字漢字", "漢字漢字下漢字漢字"], 8) == ["…字上漢…", "…字下漢…"]


LETTERS = st.characters(exclude_characters="…", exclude_categories=["Cs", "Mn", "Me"])


@given(st.text(LETTERS), st.text(LETTERS), st.integers(4, 30))
def test_two_names_that_differ_are_always_told_apart(one: str, other: str, most: int) -> None:
    cut = short_apart([one, other], most)
    assert (cut[0] == cut[1]) == (one == other)


@given(
    st.text(LETTERS, max_size=60),
    st.sets(st.text("0123456789上", min_size=1, max_size=3), min_size=1, max_size=6),
    st.text(LETTERS, max_size=60),
    st.integers(12, 30),
)
def test_names_with_a_short_difference_anywhere_are_told_apart(
    begins: str, different: set[str], ends: str, most: int
) -> None:
    names = [f"{begins}{middle}/{ends}" for middle in different]
    assert len(set(short_apart(names, most))) == len(set(names))


@given(st.text(max_size=9))
def test_padded_names_fill_their_columns(name: str) -> None:
    assert width(left(name, 20)) == width(right(name, 20)) == 20
    assert left(name, 20).rstrip(" ") == name.rstrip(" ")
    assert right(name, 20).lstrip(" ") == name.lstrip(" ")
