import hashlib
import logging
import subprocess
from pathlib import Path

import pytest

from hotloop.data.checksum import disagreement, record, sha256_of, verify
from hotloop.errors import UserError

SUM = hashlib.sha256(b"text").hexdigest()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.tgz"
    path.write_bytes(b"text")
    return path


def test_sum_is_of_the_whole_content(tmp_path):
    big = bytes(range(256)) * 10_000  # more than one chunk
    (tmp_path / "big").write_bytes(big)
    assert sha256_of(tmp_path / "big") == hashlib.sha256(big).hexdigest()


def test_first_use_records_and_later_ones_compare(path):
    verify(path)
    subprocess.run(["sha256sum", "--check", "--status", "a.tgz.sha256"], cwd=path.parent, check=True)
    verify(path)
    path.write_bytes(b"other")
    with pytest.raises(UserError, match=rf"a.tgz is damaged .*{SUM} is recorded in .*a.tgz.sha256.*delete"):
        verify(path)
    assert path.exists(), "somebody's own file is not ours to remove"


def test_given_sum_comes_first(path):
    record(path, "0" * 64)
    verify(path, SUM.upper())
    assert disagreement(path, SUM, None) is None, "the record follows"
    with pytest.raises(UserError, match="1111 is expected"):
        verify(path, "1" * 64)


@pytest.mark.parametrize("text", ["", "no sum", "abc", "0" * 63])
def test_record_without_a_sum_is_an_error(path, text):
    Path(f"{path}.sha256").write_text(text)
    with pytest.raises(UserError, match=r"a.tgz.sha256 holds no SHA-256 sum; delete it"):
        verify(path)


def test_missing_file_is_an_error(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        verify(tmp_path / "none")


def test_folder_that_cannot_be_written_to_is_only_a_warning(path, caplog, monkeypatch):
    def refuse(*_args, **_options):
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "write_text", refuse)
    with caplog.at_level(logging.WARNING):
        verify(path)
    assert "a.tgz.sha256" in caplog.text
