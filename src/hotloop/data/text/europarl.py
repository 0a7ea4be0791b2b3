"""Europarl v7, the proceedings of the European Parliament (Koehn, MT Summit 2005), any pair of its languages.

The corpus page is https://www.statmt.org/europarl. It offers one archive per language with English beside it
(`fr-en.tgz` holds `europarl-v7.fr-en.fr` and `europarl-v7.fr-en.en`); other pairs are joined here on the
English line.
"""

import difflib
import logging
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from hotloop.data.archive import extract
from hotloop.data.checksum import verify
from hotloop.data.download import check_address, download, locked
from hotloop.data.text.pivot import join_on_pivot
from hotloop.data.text.readers import COMPRESSIONS, BitextFiles, folder_listing
from hotloop.errors import UserError

logger = logging.getLogger(__name__)

LANGUAGES = {
    "bg": "Bulgarian", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English",
    "es": "Spanish", "et": "Estonian", "fi": "Finnish", "fr": "French", "hu": "Hungarian", "it": "Italian",
    "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "sk": "Slovak", "sl": "Slovene", "sv": "Swedish",
}  # fmt: skip
ARCHIVES = (".tgz", ".tar.gz", ".tar.xz", ".tar.zst", ".zip")
LARGEST_ARCHIVE = 20 * 2**30  # bytes unpacked; one pair has 0.2 to 0.7 GB, a mirror may pack several


class Europarl:
    """French-English (or any other) Europarl from the folder `dir`, downloaded there if it is missing.

    `files()` takes the first of these that is there for the training pairs; each side may be plain, .gz, .xz
    or .zst:

    1. `train.fr` and `train.en`;
    2. `europarl-v7.fr-en.fr` and `europarl-v7.fr-en.en`;
    3. the archive `fr-en.tgz` (also .tar.gz, .tar.xz, .tar.zst, .zip), which is unpacked into `dir`;
    4. the archive at `url`, fetched into `dir` (a broken download goes on where it stopped), then as 3.

    `valid.fr`/`valid.en` and `test.fr`/`test.en` are used where they exist. Europarl itself has no such
    files: a split that is not there is left out of `files()`, and the data module then splits its pairs off
    the training text by a stable hash of the source sentence, so that a sentence never lies in two splits.

    English to French uses the same files the other way round. A pair without English, German-French say, is
    joined from `de-en` and `fr-en` on the English lines (see `hotloop.data.text.pivot`) and written once to
    `europarl-v7.de-fr.de` and `.fr`.

    Args:
        dir: folder of the corpus; read-only is fine when the text is there already.
        src_lang, tgt_lang: two-letter codes, see `LANGUAGES`.
        url: where the archives are; `{pair}` stands for `fr-en`.
        sha256: expected checksum of the archive. No official sum is known here: by default that of the first
            download is written beside the archive (`fr-en.tgz.sha256`), and every later use is held against
            it.
        download: False never touches the network.
        train, valid, test: file stem of a split (`dev` for `dev.fr` and `dev.en`) in place of the search
            above; then the files have to be there.

    Raises:
        UserError: unknown language, missing or half-present files, failed download, unsafe or damaged
            archive.
    """

    def __init__(
        self,
        *,
        dir: str = "data/europarl",
        src_lang: str = "fr",
        tgt_lang: str = "en",
        url: str = "https://www.statmt.org/europarl/v7/{pair}.tgz",
        sha256: str | None = None,
        download: bool = True,
        train: str | None = None,
        valid: str | None = None,
        test: str | None = None,
    ) -> None:
        _check_language("src_lang", src_lang)
        _check_language("tgt_lang", tgt_lang)
        if src_lang == tgt_lang:
            raise UserError(f"data.src_lang and data.tgt_lang are both {src_lang!r}: choose two languages")
        if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
            raise UserError(f"data.corpus.sha256={sha256!r} is no SHA-256 sum: give 64 hexadecimal digits or null")
        check_address(url)
        self.dir = Path(dir).expanduser()
        self.src_lang, self.tgt_lang = src_lang, tgt_lang
        self.pair = pair_name(src_lang, tgt_lang)
        self.url, self.sha256, self.download = url, sha256, download
        self.stems = {"train": train, "valid": valid, "test": test}
        self._told: dict[str, BitextFiles] = {}
        if "en" not in (src_lang, tgt_lang):
            if sha256 is not None:
                raise UserError(f"data.corpus.sha256 cannot be set for {self.pair}: it is joined from two archives")
            if "{pair}" not in url:
                raise UserError(f"data.corpus.url={url!r} needs '{{pair}}': {self.pair} is joined from two archives")

    def files(self) -> dict[str, BitextFiles]:
        """Paths of the splits: always "train", "valid" and "test" where they exist. May download and
        unpack."""
        if self.dir.exists() and not self.dir.is_dir():
            raise UserError(f"data.dir={self.dir} is a file; it has to be a folder")
        splits = {"train": self._train()}
        for split in ("valid", "test"):
            stem = self.stems[split]
            found = self._local(stem or split)
            if found:
                splits[split] = found
            elif stem:
                raise self._missing(split, stem)
        if splits != self._told:  # asked for more than once while a corpus is prepared
            logger.info("Europarl %s: %s", self.pair, ", ".join(f"{k} {v.source.name}" for k, v in splits.items()))
            self._told = dict(splits)
        return splits

    def _train(self) -> BitextFiles:
        stem = self.stems["train"]
        if stem:
            found = self._local(stem)
            if found is None:
                raise self._missing("train", stem)
            return found
        reverse = "-".join(reversed(self.pair.split("-")))
        for stem in ("train", f"europarl-v7.{self.pair}", f"europarl-v7.{reverse}"):
            found = self._local(stem)
            if found:
                return found
        if "en" in (self.src_lang, self.tgt_lang):
            self._fetch_pair(self.pair)
        else:
            self._join()
        made = self._local(f"europarl-v7.{self.pair}")
        if made is None:  # somebody removed the files between two lines of this method
            raise self._missing("train", f"europarl-v7.{self.pair}")
        return made

    def _local(self, stem: str) -> BitextFiles | None:
        return find_bitext(self.dir, stem, self.src_lang, self.tgt_lang)

    def _missing(self, split: str, stem: str) -> UserError:
        return UserError(
            f"data.corpus.{split}={stem}: no {stem}.{self.src_lang} and {stem}.{self.tgt_lang} (plain, .gz, "
            f".xz or .zst); {folder_listing(self.dir)}"
        )

    def _fetch_pair(self, pair: str) -> None:
        """Put `europarl-v7.<pair>.*` into the folder, from the archive there or from the network."""
        languages = pair.split("-")
        two_ways = (
            f"no Europarl {pair} in {self.dir} ({folder_listing(self.dir)}). Two ways to get it: put "
            f"europarl-v7.{pair}.{languages[0]} and europarl-v7.{pair}.{languages[1]} (or train.{languages[0]} and "
            f"train.{languages[1]}), or the archive {pair}.tgz, there (data.dir=… names another folder); or connect to "
            "the network and run again (data.corpus.url=… names a mirror). data=parliament needs neither"
        )
        if not self.download and not self._local_archive(pair):
            raise UserError(f"{two_ways}. Nothing was fetched: data.corpus.download is false")
        try:
            self.dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make data.dir={self.dir}: {error}") from error
        with locked(self.dir / ".europarl.lock"):
            if find_bitext(self.dir, f"europarl-v7.{pair}", *languages):
                return  # another process was faster
            archive = self._local_archive(pair)
            if archive:
                verify(archive, self.sha256)
            else:
                archive = self.dir / self._archive_name(pair)
                try:
                    download(self.url.replace("{pair}", pair), archive, sha256=self.sha256)
                except UserError as error:
                    raise UserError(f"{two_ways}. The download failed: {error}") from error
            self._unpack(archive, pair)

    def _local_archive(self, pair: str) -> Path | None:
        names = [pair + suffix for suffix in ARCHIVES] + [self._archive_name(pair)]
        return next((self.dir / name for name in names if (self.dir / name).is_file()), None)

    def _archive_name(self, pair: str) -> str:
        return PurePosixPath(urlsplit(self.url.replace("{pair}", pair)).path).name or f"{pair}.tgz"

    def _unpack(self, archive: Path, pair: str) -> None:
        names = [f"europarl-v7.{pair}.{language}" for language in pair.split("-")]
        with self._work_folder(pair) as work:
            found = extract(
                archive,
                work / "files",
                members=lambda member: PurePosixPath(member).name in names,
                max_bytes=LARGEST_ARCHIVE,
            )
            for name in names:
                count = sum(path.name == name for path in found)
                if count != 1:
                    raise UserError(f"{archive} holds {count} files named {name}, not 1: it is no Europarl v7 archive")
            self._publish(found)

    def _join(self) -> None:
        """Write `europarl-v7.<pair>.*` for a pair without English, joined from two archives."""
        halves = []
        for language in self.pair.split("-"):
            half = pair_name(language, "en")
            found = find_bitext(self.dir, f"europarl-v7.{half}", language, "en")
            if found is None:
                self._fetch_pair(half)
                found = find_bitext(self.dir, f"europarl-v7.{half}", language, "en")
            if found is None:
                raise self._missing("train", f"europarl-v7.{half}")
            halves.append(found)
        with locked(self.dir / ".europarl.lock"):
            stem = f"europarl-v7.{self.pair}"
            if self._local(stem) is None:
                with self._work_folder(self.pair) as work:
                    made = [work / f"{stem}.{language}" for language in self.pair.split("-")]
                    join_on_pivot(halves[0], halves[1], made[0], made[1])
                    self._publish(made)

    @contextmanager
    def _work_folder(self, pair: str) -> Iterator[Path]:
        """A hidden folder on the same disk, gone afterwards; only for the process that holds the lock."""
        work = self.dir / f".making-{pair}"
        shutil.rmtree(work, ignore_errors=True)  # left by a process that was killed
        try:
            work.mkdir()
        except OSError as error:
            raise UserError(f"cannot write to data.dir={self.dir}: {error}") from error
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _publish(self, paths: Sequence[Path]) -> None:
        """Move finished files into the folder: under their names there are only whole ones."""
        try:
            for path in paths:
                os.replace(path, self.dir / path.name)
        except OSError as error:
            raise UserError(f"cannot write to data.dir={self.dir}: {error}") from error


def pair_name(first: str, second: str) -> str:
    """Name of a pair as Europarl writes it: `fr-en` with English last, else in alphabetical order
    (`de-fr`)."""
    low, high = sorted((first, second), key=lambda language: (language == "en", language))
    return f"{low}-{high}"


def find_bitext(folder: Path, stem: str, src_lang: str, tgt_lang: str) -> BitextFiles | None:
    """The two files `<stem>.<language>` of a folder, plain or compressed (plain first); None if neither is
    there.

    Raises:
        UserError: one side is there and the other is not.
    """
    sides = []
    for language in (src_lang, tgt_lang):
        paths = (folder / f"{stem}.{language}{suffix}" for suffix in COMPRESSIONS)
        sides.append(next((path for path in paths if path.is_file()), None))
    source, target = sides
    if source is None and target is None:
        return None
    if source is None or target is None:
        there, missing = (target, src_lang) if source is None else (source, tgt_lang)
        raise UserError(
            f"{there} has no other side: put {stem}.{missing} (plain, .gz, .xz, .zst) there or move it away"
        )
    return BitextFiles(source=source, target=target)


def _check_language(key: str, language: str) -> None:
    if language in LANGUAGES:
        return
    names = {name.lower(): code for code, name in LANGUAGES.items()} | {code: code for code in LANGUAGES}
    near = difflib.get_close_matches(str(language).lower(), names, n=3, cutoff=0.5)
    codes = list(dict.fromkeys(names[name] for name in near))
    hint = "nearest: " + ", ".join(f"{code} ({LANGUAGES[code]})" for code in codes) + "; " if codes else ""
    raise UserError(f"data.{key}={language!r} is not in Europarl; {hint}all: {' '.join(LANGUAGES)}")
