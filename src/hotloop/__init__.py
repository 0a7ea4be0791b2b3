"""hotloop: fast training that you can understand."""

__version__ = "0.1.0"
