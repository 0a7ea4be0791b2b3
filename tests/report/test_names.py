"""Names that tell runs apart."""

from pathlib import Path

import pytest

from hotloop.report.names import distinct_names, shortened


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["/x/runs/a/2026-01-02_03-04-05_678"], ["a/2026-01-02_03-04-05"]),
        (["/runs/a/2026-01-02_03-04-05_678", "/runs/b/2026-01-02_03-04-05_678"], ["a", "b"]),
        (["/runs/a/2026-01-02_03-04-05_1", "/runs/a/2026-01-02_03-04-06_1"], ["03-04-05", "03-04-06"]),
        (["/a/2026-01-02_03-04-05_1", "/a/2026-01-02_03-04-05_2"], ["2026-01-02_03-04-05_1", "2026-01-02_03-04-05_2"]),
        (["/a/2026-01-02_03-04-05_1", "/a/2026-01-03_03-04-05_1"], ["2026-01-02_03-04-05", "2026-01-03_03-04-05"]),
        (["/m/0_model=a,seed=1,x.lr=1", "/m/1_model=a,seed=1,x.lr=2"], ["lr=1", "lr=2"]),
        (["/m/0_x.lr=1,y.lr=1", "/m/1_x.lr=2,y.lr=2"], ["x.lr=1,y.lr=1", "x.lr=2,y.lr=2"]),
        (["/m/0_a=1,2,b=3", "/m/1_a=1,4,b=3"], ["a=1,2", "a=1,4"]),
        (["/m/0_a=1", "/m/1_a=1"], ["0_a=1", "1_a=1"]),
        (["/a", "/a/b"], ["a", "b"]),
        (["/a/x", "/b/y/x"], ["a", "b"]),
        (["/x/y", "/y/x"], ["y", "x"]),
        (["/r/hot/2026-01-02_03-04-05_1", "/r/hot/2026-01-02_03-04-06_1", "/r/cold/2026-01-02_03-04-07_1"],
         ["hot/03-04-05", "hot/03-04-06", "cold"]),
    ],
)  # fmt: skip
def test_the_shortest_part_that_distinguishes(folders: list[str], names: list[str]) -> None:
    assert distinct_names([Path(folder) for folder in folders]) == names


def test_an_override_that_hydra_cut_off_is_no_difference() -> None:
    folders = [Path(f"/m/{index}_{f'model={model},' + 'k=1,' * 40:.120}") for index, model in enumerate(("a", "bcd"))]
    assert distinct_names(folders) == ["model=a", "model=bcd"]


def test_labels_stay_different_when_they_are_shortened() -> None:
    assert shortened(["abc", "abcdefghijk"], 5) == ["abc", "ab…jk"]
    assert shortened(["abXXcd", "abYYcd"], 5) == ["1: ab…cd", "2: ab…cd"]
