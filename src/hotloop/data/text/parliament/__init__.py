"""`data=parliament`: generated French–English sentences in the style of parliamentary debate."""

from hotloop.data.text.parliament.corpus import Parliament
from hotloop.data.text.parliament.generator import generate

__all__ = ["Parliament", "generate"]
