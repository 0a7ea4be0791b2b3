"""Where pairs come from: the protocol of a corpus, and your own folder of bitext."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from hotloop.data.text.readers import COMPRESSIONS, FORMATS, BitextFiles, folder_listing
from hotloop.errors import UserError

SPLITS = ("train", "valid", "test")


class Corpus(Protocol):
    """Two languages and the files of each split; `valid` and `test` may be missing (then training gives them)."""

    src_lang: str
    tgt_lang: str

    def files(self) -> dict[str, BitextFiles]:
        """Files by split; downloads or generates them first where need be."""
        ...


class BitextFolder:
    """A folder with your own sentence pairs.

    For the stem "train" and the languages fr, en it takes `train.fr` and `train.en` (format parallel), or
    `train.tsv`, or `train.jsonl`; each also with .gz, .zst or .xz behind. A stem may hold dots and folders
    ("raw/news.2020"). Multi30k, for example: train="train", valid="val", test="test_2016_flickr".
    `valid=None` or `test=None` says that there is no such split: the data module then splits
    `valid_size` or `test_size` pairs off the training pairs.

    `columns` are for tsv (numbers from 1 on or header names; 1 and 2 unless given) and jsonl (keys; the
    language codes unless given).
    """

    def __init__(
        self,
        *,
        dir: str | Path,
        src_lang: str = "fr",
        tgt_lang: str = "en",
        train: str = "train",
        valid: str | None = "valid",
        test: str | None = "test",
        format: str = "auto",
        columns: tuple[int | str, int | str] | None = None,
    ) -> None:
        if src_lang == tgt_lang:
            raise UserError(f"data.corpus.src_lang and tgt_lang are both {src_lang!r}")
        if format not in ("auto", *FORMATS):
            raise UserError(f"data.corpus.format must be auto, {', '.join(FORMATS)}, got {format!r}")
        if columns is not None and (isinstance(columns, str) or len(columns) != 2):
            raise UserError(f"data.corpus.columns must be two column numbers or names, got {columns!r}")
        if columns is not None and columns[0] == columns[1]:
            raise UserError(f"data.corpus.columns names {columns[0]!r} twice: source and target would be the same")
        if columns is not None and format == "parallel":
            raise UserError("data.corpus.columns is for tsv and jsonl; data.corpus.format=parallel has no columns")
        if not train:
            raise UserError("data.corpus.train must name the training files, it is empty")
        self.src_lang, self.tgt_lang = src_lang, tgt_lang
        self._folder = Path(dir).expanduser()
        self._stems = {"train": train, "valid": valid, "test": test}
        self._formats = FORMATS if format == "auto" else (format,)
        self._columns = (columns[0], columns[1]) if columns is not None else None

    def files(self) -> dict[str, BitextFiles]:
        """Files by split. Raises UserError when a named split is not in the folder."""
        return {split: self._find(split, stem) for split, stem in self._stems.items() if stem is not None}

    def _find(self, split: str, stem: str) -> BitextFiles:
        found = [files for format in self._formats for files in self._sides(stem, format)]
        if len(found) == 1:
            return found[0]
        if found:
            choice = " or ".join(" + ".join(path.name for path in files.paths()) for files in found)
            raise UserError(f"{self._folder}: {split} is {choice}? Remove one, or set data.corpus.format")
        names = {
            "parallel": f"{stem}.{self.src_lang} with {stem}.{self.tgt_lang}",
            "tsv": f"{stem}.tsv",
            "jsonl": f"{stem}.jsonl",
        }
        message = (
            f"no {split} files: looked for {', or '.join(names[format] for format in self._formats)} "
            f"(also with .gz, .zst, .xz); {folder_listing((self._folder / stem).parent)}"
        )
        if split != "train":
            message += f"; data.corpus.{split}=null takes data.{split}_size pairs of the training set instead"
        raise UserError(message)

    def _sides(self, stem: str, format: str) -> list[BitextFiles]:
        if format == "parallel":
            source, target = self._existing(f"{stem}.{self.src_lang}"), self._existing(f"{stem}.{self.tgt_lang}")
            if source is None or target is None:
                return []
            return [BitextFiles(source, target)]
        columns = self._columns
        if format == "jsonl" and columns is None:
            columns = (self.src_lang, self.tgt_lang)
        path = self._existing(f"{stem}.{format}")
        return [] if path is None else [BitextFiles(path, format=format, columns=columns)]

    def _existing(self, name: str) -> Path | None:
        found = [path for end in COMPRESSIONS if (path := self._folder / (name + end)).is_file()]
        if len(found) > 1:
            raise UserError(f"{self._folder} holds {' and '.join(path.name for path in found)}: keep one of them")
        return found[0] if found else None
