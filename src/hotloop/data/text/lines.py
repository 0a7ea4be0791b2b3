"""Lines in memory as a data module: for evaluating a checkpoint."""

from collections.abc import Sequence

import lightning.pytorch as pl
from torch.utils.data import DataLoader

from hotloop.data.text.batch import Batch
from hotloop.data.text.batching import BucketBatchSampler
from hotloop.data.text.dataset import encode_pairs
from hotloop.data.text.tokenizer import Tokenizer


class LinesDataModule(pl.LightningDataModule):
    """A test set of normalised lines; every line is kept, an empty one too.

    Args:
        sources: N source lines.
        targets: N target lines, in the form that the model knows.
        references: N target lines as natural text, to score against.
        source_tokenizer, target_tokenizer: those of the model.
        batch_size: pairs.
    """

    kind = "text"

    def __init__(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        references: Sequence[str],
        *,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        batch_size: int = 64,
    ) -> None:
        super().__init__()
        self._texts = list(sources), list(references)
        self._dataset = encode_pairs(sources, targets, source_tokenizer, target_tokenizer)
        self.batch_size = batch_size

    def texts(self, split: str) -> tuple[list[str], list[str]]:
        """Source and reference lines; there is one split only."""
        return self._texts

    def test_dataloader(self) -> DataLoader[Batch]:
        sampler = BucketBatchSampler(
            self._dataset.source.lengths,
            self._dataset.target.lengths,
            batch_size=self.batch_size,
            shuffle=False,
            rank=self.trainer.global_rank if self.trainer else 0,
            world_size=self.trainer.world_size if self.trainer else 1,
        )
        return DataLoader(self._dataset, batch_size=None, sampler=sampler)
