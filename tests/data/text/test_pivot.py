import logging
import random
from pathlib import Path

import pytest

from hotloop.data.text.pivot import join_on_pivot
from hotloop.data.text.readers import BitextFiles
from hotloop.errors import UserError


def bitext(folder: Path, stem: str, pairs: list[tuple[str, str]]) -> BitextFiles:
    files = BitextFiles(folder / f"{stem}.source", folder / f"{stem}.pivot")
    for path, side in zip(files.paths(), zip(*pairs, strict=True), strict=True):
        path.write_text("".join(line + "\n" for line in side), encoding="utf-8")
    return files


def join(folder: Path, first: list[tuple[str, str]], second: list[tuple[str, str]]) -> list[tuple[str, str]]:
    out = folder / "out.de", folder / "out.fr"
    count = join_on_pivot(bitext(folder, "a", first), bitext(folder, "b", second), *out)
    assert sorted(folder.glob("out*")) == list(out), "no scratch file stays"
    sides = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in out]
    assert len(sides[0]) == len(sides[1]) == count
    return list(zip(*sides, strict=True))


def test_pairs_keep_the_order_of_the_first_corpus(tmp_path):
    first = [("eins", "one"), ("zwei", "two"), ("drei", "three"), ("vier", "four")]
    second = [("quatre", "four"), ("cinq", "five"), ("deux", "two"), ("un", "one")]
    assert join(tmp_path, first, second) == [("eins", "un"), ("zwei", "deux"), ("vier", "quatre")]


@pytest.mark.parametrize("side", [0, 1])
def test_repeated_and_blank_pivot_lines_are_dropped_and_counted(tmp_path, caplog, side):
    one = [("A", "one"), ("B", "two"), ("B2", "two"), ("C", " "), ("D", "only here"), ("E", "last")]
    other = [("a", "one"), ("b", "two"), ("c", ""), ("e", "last"), ("f", "only there"), ("g", "and there")]
    expected = [("A", "a"), ("E", "e")]
    with caplog.at_level(logging.INFO):
        if side == 0:
            assert join(tmp_path, one, other) == expected
            counts = "2 pairs joined; dropped: 3 of 6 and 1 of 6 lines blank or repeated, 1 and 3 unmatched"
        else:
            assert join(tmp_path, other, one) == [(b, a) for a, b in expected]
            counts = "2 pairs joined; dropped: 1 of 6 and 3 of 6 lines blank or repeated, 3 and 1 unmatched"
    assert counts in caplog.text


def test_white_space_around_the_pivot_does_not_matter_and_text_is_untouched(tmp_path):
    got = join(tmp_path, [(" Straße\u2028 ", "street ")], [("", "x"), ("rue\t", " street")])
    assert got == [(" Straße\u2028 ", "rue\t")]


def test_many_lines_in_random_order_find_their_partners(tmp_path):
    rng = random.Random(1)
    numbers = rng.sample(range(100_000), 5000)
    first, second = numbers[:4000], numbers[1000:]
    rng.shuffle(second)
    got = join(
        tmp_path, [(f"de {n}", f"en {n}") for n in first], [(f"fr {n}" * (n % 5 + 1), f"en {n}") for n in second]
    )
    assert got == [(f"de {n}", f"fr {n}" * (n % 5 + 1)) for n in first[1000:]]


def test_nothing_in_common_is_an_error(tmp_path):
    with pytest.raises(UserError, match=r"a\.pivot and .*b\.pivot have no line in common"):
        join(tmp_path, [("eins", "one"), ("nichts", "")], [("deux", "two"), ("rien", "")])


def test_e01_unequal_sides_are_an_error(tmp_path):
    files = bitext(tmp_path, "a", [("eins", "one"), ("zwei", "two")])
    files.source.write_text("eins\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"1 lines.*2"):
        join_on_pivot(files, files, tmp_path / "x", tmp_path / "y")
