import errno
import hashlib
import io
import logging
import random
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.data import download as module
from hotloop.data.download import download
from hotloop.errors import UserError

CONTENT = random.Random(1).randbytes(300_000)
SUM = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server(file_server):
    file_server.content = CONTENT
    return file_server


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "fr-en.tgz"


def get(server, target: Path, **options) -> Path:
    return download(f"{server.url}/fr-en.tgz", target, **{"backoff": 0, "timeout": 10, **options})


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_file_arrives_whole_with_its_sum_beside_it(server, target):
    assert get(server, target, sha256=SUM.upper(), size=len(CONTENT)) == target
    assert target.read_bytes() == CONTENT
    assert visible(target.parent) == ["fr-en.tgz", "fr-en.tgz.sha256"]
    assert (target.parent / "fr-en.tgz.sha256").read_text() == f"{SUM}  fr-en.tgz\n"
    assert len(server.requests) == 1


def test_empty_file_is_a_file(server, target):
    server.content = b""
    assert get(server, target).read_bytes() == b""


def test_unknown_length_is_read_to_the_end(server, target):
    server.length = None
    assert get(server, target, size=len(CONTENT)).read_bytes() == CONTENT


def test_dropped_connection_goes_on_where_it_stopped(server, target):
    server.drops = [100_000, 50_000]
    assert get(server, target).read_bytes() == CONTENT
    assert [request.get("Range") for request in server.requests] == [None, "bytes=100000-", "bytes=150000-"]
    assert [request.get("If-Range") for request in server.requests] == [None, '"v1"', '"v1"']


@pytest.mark.parametrize("without", ["ranges", "etag", "strong etag"])
def test_server_that_cannot_resume_is_asked_for_all_again(server, target, without):
    server.drops = [100_000]
    server.ranges = without != "ranges"
    server.etag = {"ranges": '"v1"', "etag": None, "strong etag": 'W/"v1"'}[without]
    assert get(server, target).read_bytes() == CONTENT
    assert len(server.requests) == 2
    assert ("Range" in server.requests[1]) == (without == "ranges")


@pytest.mark.parametrize("length", [50_000, 100_000, 300_000])
def test_changed_file_is_never_glued_to_the_old_part(server, target, length):
    server.drops = [100_000]
    with pytest.raises(UserError, match="100,000 bytes are kept"):
        get(server, target, retries=0)
    server.content, server.etag = CONTENT[::-1][:length], '"v2"'
    assert get(server, target).read_bytes() == server.content


def test_changed_file_with_the_old_tag_is_found_by_its_length(server, target):
    server.drops = [100_000]
    with pytest.raises(UserError):
        get(server, target, retries=0)
    server.content = CONTENT[::-1][:200_000]
    assert get(server, target).read_bytes() == server.content


def test_part_longer_than_the_file_is_thrown_away(server, target):
    server.drops = [100_000]
    with pytest.raises(UserError):
        get(server, target, retries=0)
    server.content = CONTENT[:1000]  # the server answers 416 to bytes=100000-
    assert get(server, target).read_bytes() == CONTENT[:1000]


def test_wrong_piece_is_thrown_away(server, target):
    server.drops, server.shift = [100_000], 10
    assert get(server, target).read_bytes() == CONTENT
    assert [request.get("Range") for request in server.requests] == [None, "bytes=100000-", None]


def test_later_call_goes_on_and_a_whole_part_needs_no_request(server, target):
    server.drops = [100_000]
    with pytest.raises(UserError, match=r"100,000 of 300,000 bytes.*run again"):
        get(server, target, retries=0)
    assert visible(target.parent) == ["fr-en.tgz.part", "fr-en.tgz.part.json"]
    (target.parent / "fr-en.tgz.part").write_bytes(CONTENT)
    assert get(server, target, sha256=SUM).read_bytes() == CONTENT
    assert len(server.requests) == 1


def test_part_of_another_address_is_thrown_away(server, target):
    server.drops = [100_000]
    with pytest.raises(UserError):
        get(server, target, retries=0)
    assert download(f"{server.url}/other", target).read_bytes() == CONTENT
    assert "Range" not in server.requests[1]


@pytest.mark.parametrize("note", ["", "[]", "{}", "garbage", '{"url": 3}'])
def test_damaged_note_beside_a_part_means_a_fresh_start(server, target, note):
    target.parent.mkdir()
    Path(f"{target}.part").write_bytes(b"old")
    Path(f"{target}.part.json").write_text(note)
    assert get(server, target).read_bytes() == CONTENT


def test_attempts_are_counted(server, target):
    server.drops = [10] * 20
    with pytest.raises(UserError, match="lost after 30 of 300,000 bytes"):
        get(server, target, retries=2)
    assert len(server.requests) == 3


def test_attempts_that_bring_enough_do_not_count(server, target, monkeypatch):
    monkeypatch.setattr(module, "ENOUGH", 1000)
    server.drops = [1000] * 10
    assert get(server, target, retries=1).read_bytes() == CONTENT
    assert len(server.requests) == 11


def test_wrong_sum_names_both_and_leaves_no_file(server, target):
    with pytest.raises(UserError) as caught:
        get(server, target, sha256="0" * 64)
    for word in ("fr-en.tgz", SUM, "0" * 64, "removed"):
        assert word in str(caught.value)
    assert visible(target.parent) == []


def test_second_download_is_held_against_the_sum_of_the_first(server, target):
    get(server, target)
    target.unlink()
    server.content = CONTENT[::-1]
    with pytest.raises(UserError, match=f"{SUM} is recorded in .*fr-en.tgz.sha256.*delete that record"):
        get(server, target)
    assert visible(target.parent) == ["fr-en.tgz.sha256"]


def test_a_given_sum_outranks_the_recorded_one(server, target):
    get(server, target)
    target.unlink()
    server.content = CONTENT[::-1]
    new = hashlib.sha256(server.content).hexdigest()
    assert get(server, target, sha256=new).read_bytes() == server.content
    assert (target.parent / "fr-en.tgz.sha256").read_text().startswith(new)


def test_existing_file_is_checked_and_not_fetched(server, target):
    target.parent.mkdir()
    target.write_bytes(CONTENT)
    get(server, target, sha256=SUM)
    with pytest.raises(UserError, match="0000 is expected"):
        get(server, target, sha256="0" * 64)
    assert target.read_bytes() == CONTENT
    assert server.requests == []


def test_server_that_announces_more_than_it_sends(server, target):
    server.length, server.ranges = 5, False
    with pytest.raises(UserError, match="300,000 of 300,005 bytes"):
        get(server, target, retries=1)
    assert not target.exists()


def test_server_that_announces_less_than_it_sends(server, target):
    server.length = -5
    with pytest.raises(UserError, match="299,995 bytes, 300,000 expected"):
        get(server, target, size=len(CONTENT))
    with pytest.raises(UserError, match=SUM):
        get(server, target, sha256=SUM)
    assert visible(target.parent) == []


def test_wrong_size_of_unknown_length_is_an_error(server, target):
    server.length = None
    with pytest.raises(UserError, match="300,000 bytes received, 7 expected"):
        get(server, target, size=7, retries=1)
    assert visible(target.parent) == []


def test_404_is_told_at_once(server, target):
    server.statuses = [404] * 3
    with pytest.raises(UserError, match=r"/fr-en.tgz: the server answers 404 .*check the address"):
        get(server, target)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_busy_server_is_asked_again(server, target, status):
    server.statuses = [status] * 2
    assert get(server, target).read_bytes() == CONTENT
    assert len(server.requests) == 3


def test_silent_server_times_out(server, target):
    server.stall = 0.5
    with pytest.raises(UserError, match="timeout"):
        get(server, target, timeout=0.05, retries=1)
    assert len(server.requests) == 2


def test_no_server_is_told_at_once(target):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(UserError, match=f"127.0.0.1:{port}.*cannot be reached"):
        download(f"http://127.0.0.1:{port}/x", target, backoff=1000)


def test_no_network_is_told_at_once(target, monkeypatch):
    def no_name(*_args, **_options):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_name)
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(UserError, match=r"cannot download https://example.invalid/x: .*no network\?"):
        download("https://example.invalid/x", target, backoff=1000)


def test_network_that_fails_in_between_is_tried_again(server, target, monkeypatch):
    server.drops = [100_000]
    connect, calls = socket.getaddrinfo, []

    def sometimes(*args, **options):
        calls.append(args)
        if len(calls) == 2:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return connect(*args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", sometimes)
    assert get(server, target).read_bytes() == CONTENT
    assert len(calls) == 3


def test_tls_failure_is_told_at_once(server, target):
    with pytest.raises(UserError, match="TLS"):
        download(server.url.replace("http:", "https:") + "/x", target, backoff=1000)


@pytest.mark.parametrize(
    "url", ["", "fr-en.tgz", "ftp://host/x", "file:///etc/passwd", "http://", "http://host:99999/", "http://[::1"]
)
def test_only_web_addresses_are_fetched(target, url):
    with pytest.raises(UserError, match="no http:// or https:// address"):
        download(url, target)
    assert not target.parent.exists()


def test_address_with_a_space_is_an_error(server, target):
    with pytest.raises(UserError, match="check the address"):
        download(f"{server.url}/a b", target)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x", "/again"])
def test_redirect_leads_only_to_web_addresses_and_ends(server, target, location):
    server.location = location
    with pytest.raises(UserError, match="cannot download"):
        get(server, target, retries=1)
    assert visible(target.parent) == []


def test_redirect_is_followed(server, target):
    server.location = f"{server.url}/there"
    server.files = {"/fr-en.tgz": b""}
    with pytest.raises(UserError, match="404"):
        get(server, target)
    assert [request["path"] for request in server.requests] == ["/fr-en.tgz", "/there"]


def test_too_small_disk_is_told_before_the_transfer(server, target, monkeypatch):
    usage = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(UserError, match="1,000 bytes free, 300,000 are needed"):
        get(server, target)


def test_disk_that_fills_up_keeps_the_part(server, target, monkeypatch):
    path_open = Path.open

    class Full(io.FileIO):
        def write(self, data) -> int:
            if self.tell():
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    def opened(path, mode="r", *args, **options):
        return (
            io.BufferedWriter(Full(path, mode)) if path.suffix == ".part" else path_open(path, mode, *args, **options)
        )

    monkeypatch.setattr(module, "CHUNK", 1000)
    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(UserError, match=r"the disk of .*folder is full after [\d,]+ bytes; make room"):
        get(server, target)
    monkeypatch.setattr(Path, "open", path_open)
    assert get(server, target).read_bytes() == CONTENT
    assert "Range" in server.requests[1]


def test_folder_that_cannot_be_made_is_an_error(server, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="file"):
        get(server, tmp_path / "file" / "fr-en.tgz")


def test_two_processes_fetch_a_file_once(server, target):
    server.stall = 0.5
    code = (
        "import sys; from pathlib import Path; from hotloop.data.download import download;"
        "download(sys.argv[1], Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, f"{server.url}/fr-en.tgz", str(target)]
    processes = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    assert target.read_bytes() == CONTENT
    assert len(server.requests) == 1


def test_log_has_a_line_each_tenth_when_there_is_no_terminal(server, target, caplog, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 1000)
    with caplog.at_level(logging.INFO, logger="hotloop"):
        get(server, target)
    lines = [record.getMessage() for record in caplog.records if "s left" in record.getMessage()]
    assert len(lines) == 10
    assert lines[4].startswith("fr-en.tgz: 50 %")


def test_terminal_has_a_bar_with_the_time_left(server, target, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    get(server, target)
    assert "fr-en.tgz" in terminal.getvalue()
    assert "300.0/300.0 kB" in terminal.getvalue()
