import gzip
import io
import itertools
import logging
import lzma
import os
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import zstandard

from hotloop.data.download import locked
from hotloop.data.text.europarl import LANGUAGES, Europarl, find_bitext, pair_name
from hotloop.data.text.readers import BitextFiles, read_pairs
from hotloop.errors import UserError

FR_EN = {"fr": ["Bonjour.", "Merci."], "en": ["Hello.", "Thank you."]}
PAIRS = list(zip(FR_EN["fr"], FR_EN["en"], strict=True))


def write(folder: Path, stem: str, sides: dict[str, list[str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for language, lines in sides.items():
        (folder / f"{stem}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def archive(pair: str, sides: dict[str, list[str]], *, folder: str = "", extra: str = "README") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in [(extra, "x")] + [
            (f"{folder}europarl-v7.{pair}.{language}", "".join(f"{line}\n" for line in lines))
            for language, lines in sides.items()
        ]:
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def offline(folder: Path, **options) -> Europarl:
    return Europarl(dir=str(folder), download=False, **options)


def content(files: BitextFiles) -> list[tuple[str, str]]:
    return list(read_pairs(files))


@pytest.mark.parametrize("stem", ["train", "europarl-v7.fr-en"])
def test_local_text_is_found_and_read_in_both_directions(tmp_path, stem):
    write(tmp_path, stem, FR_EN)
    assert content(offline(tmp_path).files()["train"]) == PAIRS
    backwards = offline(tmp_path, src_lang="en", tgt_lang="fr").files()["train"]
    assert content(backwards) == [(en, fr) for fr, en in PAIRS]


def test_splits_that_are_not_there_are_left_out(tmp_path):
    write(tmp_path, "train", FR_EN)
    assert list(offline(tmp_path).files()) == ["train"]
    write(tmp_path, "test", FR_EN)
    assert list(offline(tmp_path).files()) == ["train", "test"]
    write(tmp_path, "valid", FR_EN)
    assert list(offline(tmp_path).files()) == ["train", "valid", "test"]


def test_train_files_come_before_the_whole_corpus(tmp_path):
    write(tmp_path, "train", FR_EN)
    write(tmp_path, "europarl-v7.fr-en", {"fr": ["x"], "en": ["y"]})
    assert content(offline(tmp_path).files()["train"]) == PAIRS


def test_splits_of_other_names(tmp_path):
    for stem in ("part1", "dev", "test", "train"):
        write(tmp_path, stem, FR_EN)
    files = offline(tmp_path, train="part1", valid="dev").files()
    assert [f.source.name for f in files.values()] == ["part1.fr", "dev.fr", "test.fr"]


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_named_split_has_to_be_there(tmp_path, split):
    write(tmp_path, "train", FR_EN)
    with pytest.raises(UserError, match=rf"data.corpus.{split}=dev: no dev.fr and dev.en .*train.en, train.fr"):
        offline(tmp_path, **{split: "dev"}).files()


@pytest.mark.parametrize("suffixes", [(".gz", ".gz"), (".xz", ""), ("", ".zst")])
def test_sides_may_be_compressed(tmp_path, suffixes):
    compress = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
    for (language, lines), suffix in zip(FR_EN.items(), suffixes, strict=True):
        data = "".join(f"{line}\n" for line in lines).encode()
        (tmp_path / f"europarl-v7.fr-en.{language}{suffix}").write_bytes(compress[suffix](data))
    assert content(offline(tmp_path).files()["train"]) == PAIRS


@pytest.mark.parametrize("stem", ["train", "valid", "test", "europarl-v7.fr-en"])
@pytest.mark.parametrize("missing", ["fr", "en"])
def test_half_a_pair_is_an_error(tmp_path, stem, missing):
    write(tmp_path, "train", FR_EN)
    write(tmp_path, stem, FR_EN)
    (tmp_path / f"{stem}.{missing}").unlink()
    if stem == "europarl-v7.fr-en":
        (tmp_path / "train.fr").unlink()
        (tmp_path / "train.en").unlink()
    with pytest.raises(UserError, match=rf"{stem}\.(fr|en) has no other side: put {stem}\.{missing} "):
        Europarl(dir=str(tmp_path), url="http://127.0.0.1:9/{pair}.tgz").files()


def test_read_only_folder_stays_untouched(tmp_path):
    write(tmp_path, "europarl-v7.fr-en", FR_EN)
    Europarl(dir=str(tmp_path)).files()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("folder", ["", "len15-25"])
def test_real_excerpt_is_found(shared_data, folder):
    files = offline(shared_data / "europarl-fr-en" / folder).files()
    assert list(files) == ["train", "valid", "test"]
    assert files["train"].source.name == ("train.fr" if folder else "europarl-v7.fr-en.fr")
    for split in files.values():
        assert all(source and target for source, target in itertools.islice(read_pairs(split), 10))
    assert sum(1 for _ in read_pairs(files["test"])) == (774 if folder else 3000)


def test_e01_unequal_sides_are_an_error_with_both_counts(tmp_path):
    write(tmp_path, "train", {"fr": ["a"] * 5, "en": ["b"] * 4})
    with pytest.raises(UserError, match=r"train.fr has 5 lines.*train.en has 4"):
        content(offline(tmp_path).files()["train"])


@pytest.mark.parametrize("where", ["no/such/folder", "empty"])
def test_nothing_there_tells_both_ways(tmp_path, where):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError) as caught:
        offline(tmp_path / where, src_lang="en", tgt_lang="de").files()
    message = str(caught.value)
    for part in ("de-en", "europarl-v7.de-en.de", "europarl-v7.de-en.en", "de-en.tgz", str(tmp_path / where)):
        assert part in message
    assert "data.dir=" in message and "data.corpus.url=" in message and "\n" not in message
    assert [p.name for p in tmp_path.rglob("*")] == ["empty"], "nothing is made in vain"


def test_no_network_tells_both_ways_in_one_message(tmp_path):
    with pytest.raises(UserError) as caught:
        Europarl(dir=str(tmp_path / "new"), url="http://127.0.0.1:9/{pair}.tgz").files()
    message = str(caught.value)
    assert "put europarl-v7.fr-en.fr and europarl-v7.fr-en.en" in message
    assert "connect to the network and run again" in message
    assert "http://127.0.0.1:9/fr-en.tgz" in message and "\n" not in message


@pytest.mark.parametrize("inside", ["", "training/"])
@pytest.mark.parametrize("order", [("fr", "en"), ("en", "fr")])
def test_download_unpacks_the_two_files_once(file_server, tmp_path, inside, order):
    file_server.files = {"/v7/fr-en.tgz": archive("fr-en", FR_EN, folder=inside)}
    corpus = Europarl(
        dir=str(tmp_path / "d"), src_lang=order[0], tgt_lang=order[1], url=file_server.url + "/v7/{pair}.tgz"
    )
    for _ in range(2):
        assert content(corpus.files()["train"]) == [tuple(p[:: 1 if order[0] == "fr" else -1]) for p in PAIRS]
    assert len(file_server.requests) == 1
    assert sorted(p.name for p in (tmp_path / "d").iterdir() if p.name[0] != ".") == [
        "europarl-v7.fr-en.en",
        "europarl-v7.fr-en.fr",
        "fr-en.tgz",
        "fr-en.tgz.sha256",
    ]
    assert not [p for p in (tmp_path / "d").iterdir() if p.is_dir()]


@pytest.mark.parametrize("name", ["fr-en.tgz", "fr-en.tar.gz", "several-pairs.tgz"])
def test_archive_in_the_folder_needs_no_network(tmp_path, name):
    (tmp_path / name).write_bytes(archive("fr-en", FR_EN))
    assert content(offline(tmp_path, url="http://127.0.0.1:9/several-pairs.tgz").files()["train"]) == PAIRS
    assert (tmp_path / f"{name}.sha256").exists()


def test_deleted_text_is_unpacked_again_from_the_verified_archive(file_server, tmp_path):
    file_server.content = archive("fr-en", FR_EN)
    corpus = Europarl(dir=str(tmp_path), url=file_server.url + "/{pair}.tgz")
    for path in corpus.files()["train"].paths():
        path.unlink()
    assert content(corpus.files()["train"]) == PAIRS
    assert len(file_server.requests) == 1
    for path in corpus.files()["train"].paths():
        path.unlink()
    (tmp_path / "fr-en.tgz").write_bytes(archive("fr-en", {"fr": ["x"], "en": ["y"]}))
    with pytest.raises(UserError, match="is damaged or another version"):
        corpus.files()


def test_wrong_sum_of_a_download_is_an_error_before_unpacking(file_server, tmp_path):
    file_server.content = archive("fr-en", FR_EN)
    with pytest.raises(UserError, match=f"The download failed: fr-en.tgz .*{'0' * 64} is expected"):
        Europarl(dir=str(tmp_path), url=file_server.url + "/{pair}.tgz", sha256="0" * 64).files()
    assert [p.name for p in tmp_path.iterdir() if p.name[0] != "."] == []


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    (tmp_path / "fr-en.tgz").write_bytes(archive("fr-en", FR_EN))
    write(tmp_path / ".making-fr-en" / "files", "europarl-v7.fr-en", {"fr": ["half"], "en": []})
    assert content(offline(tmp_path).files()["train"]) == PAIRS
    assert not (tmp_path / ".making-fr-en").exists()


@pytest.mark.parametrize("sides", [{"fr": ["x"]}, {}])
def test_archive_without_the_two_files_is_an_error(tmp_path, sides):
    (tmp_path / "fr-en.tgz").write_bytes(archive("fr-en", sides))
    with pytest.raises(UserError, match=r"fr-en.tgz holds (0 files named|none of the files wanted; it holds: README)"):
        offline(tmp_path).files()
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(("europarl", ".making"))]


def test_two_processes_download_once(file_server, tmp_path):
    file_server.content, file_server.stall = archive("fr-en", FR_EN), 0.5
    code = (
        "import sys; from hotloop.data.text.europarl import Europarl;"
        "print(sorted(Europarl(dir=sys.argv[1], url=sys.argv[2]).files()))"
    )
    command = [sys.executable, "-c", code, str(tmp_path), file_server.url + "/{pair}.tgz"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=60)[0] for process in processes] == ["['train']\n"] * 2
    assert len(file_server.requests) == 1


def test_second_process_waits_and_takes_what_the_first_has_made(file_server, tmp_path, caplog):
    corpus = Europarl(dir=str(tmp_path), url=file_server.url + "/{pair}.tgz")
    with caplog.at_level(logging.INFO), ThreadPoolExecutor(1) as pool:
        with locked(tmp_path / ".europarl.lock"):
            waiting = pool.submit(corpus.files)
            for _ in range(500):
                if "waiting for another process" in caplog.text:
                    break
                time.sleep(0.01)
            assert not waiting.done()
            write(tmp_path, "europarl-v7.fr-en", FR_EN)
        assert content(waiting.result(timeout=30)["train"]) == PAIRS
    assert file_server.requests == []


def test_pair_without_english_is_joined_once_and_read_both_ways(tmp_path):
    write(tmp_path, "europarl-v7.de-en", {"de": ["Danke.", "Hallo.", "Nein."], "en": ["Thank you.", "Hello.", "No."]})
    (tmp_path / "fr-en.tgz").write_bytes(archive("fr-en", FR_EN))
    german = offline(tmp_path, src_lang="de", tgt_lang="fr").files()["train"]
    assert content(german) == [("Danke.", "Merci."), ("Hallo.", "Bonjour.")]
    assert {p.name for p in german.paths()} == {"europarl-v7.de-fr.de", "europarl-v7.de-fr.fr"}
    (tmp_path / "europarl-v7.de-en.de").unlink()
    (tmp_path / "europarl-v7.de-en.en").unlink()
    french = offline(tmp_path, src_lang="fr", tgt_lang="de").files()["train"]
    assert content(french) == [("Merci.", "Danke."), ("Bonjour.", "Hallo.")]
    assert not [p for p in tmp_path.iterdir() if p.is_dir()]


def test_pair_without_english_is_downloaded_as_two(file_server, tmp_path):
    de_en = {"de": ["Hallo.", "Danke."], "en": FR_EN["en"]}
    file_server.files = {"/fr-en.tgz": archive("fr-en", FR_EN), "/de-en.tgz": archive("de-en", de_en)}
    corpus = Europarl(dir=str(tmp_path), src_lang="fr", tgt_lang="de", url=file_server.url + "/{pair}.tgz")
    assert content(corpus.files()["train"]) == [("Bonjour.", "Hallo."), ("Merci.", "Danke.")]
    assert [request["path"] for request in file_server.requests] == ["/de-en.tgz", "/fr-en.tgz"]


def test_local_text_of_a_pair_without_english_needs_no_joining(tmp_path):
    write(tmp_path, "europarl-v7.fr-de", {"fr": ["Merci."], "de": ["Danke."]})
    assert content(offline(tmp_path, src_lang="de", tgt_lang="fr").files()["train"]) == [("Danke.", "Merci.")]


@pytest.mark.parametrize(
    ("language", "nearest"),
    [("french", "fr (French)"), ("FR", "fr (French)"), ("eng", "en (English)"), ("fra", "fr (French)")],
)
def test_unknown_language_gets_the_nearest(language, nearest):
    with pytest.raises(UserError, match=f"data.src_lang='{language}'") as caught:
        Europarl(src_lang=language)
    assert nearest in str(caught.value)


@pytest.mark.parametrize("language", ["", "..", "xx", "fr/../x", None, 3])
def test_unknown_language_is_refused(language):
    with pytest.raises(UserError, match=r"data.tgt_lang=.*not in Europarl"):
        Europarl(tgt_lang=language)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tgt_lang": "fr"}, "both 'fr'"),
        ({"sha256": "abc"}, "data.corpus.sha256='abc'"),
        ({"url": "ftp://host/{pair}.tgz"}, "ftp://host"),
        ({"tgt_lang": "de", "url": "http://host/fr-en.tgz"}, "needs '{pair}'"),
        ({"tgt_lang": "de", "sha256": "0" * 64}, "two archives"),
    ],
)
def test_bad_options_are_refused_at_once(options, message):
    with pytest.raises(UserError) as caught:
        Europarl(**options)
    assert message in str(caught.value)


def test_folder_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="is a file"):
        Europarl(dir=str(tmp_path / "file")).files()
    with pytest.raises(UserError, match=r"cannot make data.dir"):
        Europarl(dir=str(tmp_path / "file" / "folder")).files()


def test_pair_names_have_english_last():
    assert pair_name("fr", "en") == pair_name("en", "fr") == "fr-en"
    assert pair_name("sv", "en") == "sv-en" and pair_name("en", "bg") == "bg-en"
    assert pair_name("fr", "de") == "de-fr"
    assert len(LANGUAGES) == 21


def test_plain_files_come_before_compressed_ones(tmp_path):
    write(tmp_path, "train", FR_EN)
    (tmp_path / "train.fr.gz").write_bytes(gzip.compress(b"other"))
    found = find_bitext(tmp_path, "train", "fr", "en")
    assert found is not None and found.source.name == "train.fr"


def test_home_folder_is_understood(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "corpora", "train", FR_EN)
    assert content(Europarl(dir=os.path.join("~", "corpora")).files()["train"]) == PAIRS


def test_the_files_are_told_once(tmp_path, caplog):
    write(tmp_path, "train", FR_EN)
    corpus = offline(tmp_path)
    with caplog.at_level(logging.INFO):
        assert corpus.files() == corpus.files()
    assert [record.getMessage() for record in caplog.records] == ["Europarl fr-en: train train.fr"]
