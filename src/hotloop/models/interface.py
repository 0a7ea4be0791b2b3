"""What every text model offers: one teacher-forced pass for training, one step at a time for search.

Letters: B batch, S source length, T target length, H hidden, V vocabulary. Everything is batch-first.
Source rows are ``tokens + EOS``, target inputs ``BOS + tokens``; PAD fills the rest. Lengths are int64 tensors on
the CPU that count those markers: packing wants them there, and reading them back from a device would make the
host wait inside every step.
"""

from typing import Protocol, TypeVar

from torch import Tensor

StateT = TypeVar("StateT", bound="State")


class State(Protocol):
    """What a model remembers between two steps of decoding; opaque to whoever searches.

    A state has N rows, one a hypothesis. Rows of one sentence may share what depends on the source alone.
    """

    @property
    def attention(self) -> Tensor | None:
        """(N, S) float32: where the last step looked in the alignment layer; None unless `start` keeps it."""
        ...

    def select(self: StateT, rows: Tensor, *, width: int = 1) -> StateT:
        """Keep, repeat or reorder the rows: row ``i`` of the result is row ``rows[i]`` of this state.

        ``rows`` is an int64 tensor (N,) on the state's device. With ``width`` above 1 each ``width`` consecutive
        rows of the result are hypotheses of one sentence, and the sentences keep their order: some may leave, none
        may move. A state then holds the source once a sentence instead of once a row.
        """
        ...


class Translator(Protocol):
    """The protocol of every text model; an implementation is also an ``nn.Module``."""

    attends: bool  # whether attention_weights() works
    alignment_layer: int  # the decoder layer whose attention, averaged over its heads, says which words belong together
    source_vocabulary: int
    target_vocabulary: int

    def forward(self, source: Tensor, source_length: Tensor, target_in: Tensor, target_length: Tensor) -> Tensor:
        """Read source (B, S) and the right words so far (B, T); give the hidden states (B, T, H) of all steps.

        ``target_length`` (B,) counts the tokens of ``target_in``. What stands behind a row's length is ignored.
        """
        ...

    def __call__(self, source: Tensor, source_length: Tensor, target_in: Tensor, target_length: Tensor) -> Tensor: ...

    def project(self, hidden: Tensor) -> Tensor:
        """Hidden states (..., H) to logits (..., V); apart from forward, so that only real tokens need be projected."""
        ...

    def start(self, source: Tensor, source_length: Tensor, *, keep_attention: bool = False) -> State:
        """Do all work that depends on the source (B, S) alone, once.

        With ``keep_attention`` each step leaves in ``State.attention`` where it looked. ValueError where
        ``attends`` is False.
        """
        ...

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """Feed one token a row, (B,), the first being BOS; give the logits (B, V) of the next and the new state."""
        ...

    def attention_weights(self, source: Tensor, source_length: Tensor, target_in: Tensor) -> Tensor:
        """Teacher-forced weights (B, layers, heads, T, S): each row sums to 1 and is exactly 0 on padding.

        Raises ValueError where ``attends`` is False.
        """
        ...
