"""The default corpus: French and English sentences of debate from a grammar of our own, written to files once."""

import logging
import os
import shutil
import tempfile
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path

from filelock import FileLock

from hotloop.data.text.parliament.generator import GRAMMAR_VERSION, generate
from hotloop.data.text.readers import BitextFiles
from hotloop.errors import UserError

logger = logging.getLogger(__name__)

SPLITS = ("train", "valid", "test")
_BUCKETS = 32  # one in 32 sentences may be valid, one test, the rest train
_RANGES = {"pairs": (100, 2_000_000), "valid": (1, 20_000), "test": (1, 20_000), "seed": (0, 2**31 - 1)}


def split_of(digest: int) -> str:
    """Where a sentence belongs by its hash; the same English is always in the same split."""
    bucket = digest % _BUCKETS
    return "valid" if bucket == 0 else "test" if bucket == 1 else "train"


class Parliament:
    """Generated French–English pairs in the style of parliamentary debate.

    The pairs are all different, in French and in English. A hash of the English sentence decides whether a pair may
    be training, validation or test, so that no sentence of either language is in two splits, and validation and test
    of one seed stay the same whatever the number of training pairs.

    Args:
        pairs: training pairs, 100 to 2,000,000.
        valid: validation pairs, 1 to 20,000.
        test: test pairs, 1 to 20,000.
        seed: another seed gives other sentences.
        dir: where the files go, in a folder whose name holds every number above and the version of the grammar.

    Raises:
        UserError: a number is out of range; from `files`, `dir` cannot be written to.
    """

    src_lang = "fr"
    tgt_lang = "en"

    def __init__(
        self, *, pairs: int = 20_000, valid: int = 500, test: int = 500, seed: int = 1, dir: str = "data/parliament"
    ) -> None:
        for key, value in {"pairs": pairs, "valid": valid, "test": test, "seed": seed}.items():
            low, high = _RANGES[key]
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise UserError(f"data.corpus.{key}={value!r}: must be a whole number from {low:,} to {high:,}")
        self.sizes = {"train": pairs, "valid": valid, "test": test}
        self.seed = seed
        name = f"v{GRAMMAR_VERSION}-pairs{pairs}-valid{valid}-test{test}-seed{seed}"
        self.folder = Path(dir).expanduser() / name

    def files(self) -> dict[str, BitextFiles]:
        """Paths of train, valid and test, written first if they are not there yet."""
        try:
            if not self.folder.is_dir():
                self.folder.parent.mkdir(parents=True, exist_ok=True)
                with FileLock(self.folder.with_name(self.folder.name + ".lock")):
                    if not self.folder.is_dir():  # another process may have written it while this one waited
                        self._write()
        except OSError as error:
            raise UserError(f"cannot write the corpus to data.dir={self.folder.parent}: {error}") from error
        return {
            split: BitextFiles(source=self.folder / f"{split}.fr", target=self.folder / f"{split}.en")
            for split in SPLITS
        }

    def _write(self) -> None:
        temporary = Path(tempfile.mkdtemp(prefix=self.folder.name + ".", suffix=".tmp", dir=self.folder.parent))
        try:
            self._fill(temporary)
            os.chmod(temporary, 0o755)  # mkdtemp makes it private
            temporary.rename(self.folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise

    def _fill(self, folder: Path) -> None:
        missing = dict(self.sizes)
        seen: set[int] = set()  # 8-byte hashes: two million sentences as text would take 300 MB
        repeated = 0
        with ExitStack() as stack:
            files = {
                split: [
                    stack.enter_context(open(folder / f"{split}.{lang}", "w", encoding="utf-8", newline="\n"))
                    for lang in ("fr", "en")
                ]
                for split in SPLITS
            }
            for french, english in generate(self.seed):
                digest = int.from_bytes(blake2b(english.encode(), digest_size=8).digest(), "little")
                split = split_of(digest)
                if not missing[split]:
                    continue
                if digest in seen:
                    repeated += 1
                    continue
                seen.add(digest)
                source, target = files[split]
                source.write(french + "\n")
                target.write(english + "\n")
                missing[split] -= 1
                if not missing[split] and not any(missing.values()):
                    break
        logger.info(
            "parliament: wrote %s pairs to %s (%d repeated sentences left out)",
            " + ".join(f"{self.sizes[split]:,} {split}" for split in SPLITS),
            self.folder,
            repeated,
        )
