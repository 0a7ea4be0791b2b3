"""Ids that mean the same in every vocabulary; they appear in no text and no text turns into them, but for UNK."""

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>")
