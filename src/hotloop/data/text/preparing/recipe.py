"""What a prepared corpus is made of, and the description that names its folder in the cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hotloop.data.cache_folder import content_hash
from hotloop.data.text.normalisation import check_unicode_form
from hotloop.data.text.preparing.filters import Filters
from hotloop.data.text.readers import BitextFiles
from hotloop.data.text.tokenizer import TokenizerOptions
from hotloop.errors import UserError

_FORMAT = 2  # raise it when the same options would give other arrays or other facts about them


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides what a prepared corpus holds."""

    files: Mapping[str, BitextFiles]  # by split
    src_lang: str
    tgt_lang: str
    filters: Filters = field(default_factory=Filters)
    tokenizer: TokenizerOptions = field(default_factory=TokenizerOptions)
    unicode_form: str = "nfc"  # nfc, nfkc or none
    lowercase: bool = False
    pretokenized: bool = False  # the files hold Moses-tokenised text
    valid_size: int = 1_000  # pairs split off training where there is no valid split
    test_size: int = 1_000

    def __post_init__(self) -> None:
        check_unicode_form(self.unicode_form)
        for name in ("valid_size", "test_size"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise UserError(f"data.{name} must be a number of pairs, 0 or more, got {value!r}")
        if "train" not in self.files:
            raise UserError("the corpus has no train split")

    def off_training(self) -> dict[str, int]:
        """How many pairs each split takes from the training pairs."""
        sizes = {"valid": self.valid_size, "test": self.test_size}
        return {split: size for split, size in sizes.items() if split not in self.files and size}

    def describe(self, memo: Path) -> dict[str, Any]:
        """Plain values that differ whenever the result would."""
        return {
            "format": _FORMAT,
            "languages": [self.src_lang, self.tgt_lang],
            "files": {
                split: {
                    "format": files.format,
                    "columns": list(files.columns or ()),
                    "contents": [content_hash(path, memo=memo) for path in files.paths()],
                    "names": "".join(path.suffix for path in files.paths() if path.suffix in (".gz", ".zst", ".xz")),
                }
                for split, files in sorted(self.files.items())
            },
            "off_training": self.off_training(),
            "filters": asdict(self.filters),
            "tokenizer": asdict(self.tokenizer),
            "normalisation": [self.unicode_form, self.lowercase, self.pretokenized],
        }
