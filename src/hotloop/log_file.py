"""The log file of a run, for what the screen shows in its own way."""

import logging


def log_to_file(text: str, *, source: str = "hotloop") -> None:
    """Write one line to the log file and nowhere else; nothing where there is no log file.

    Args:
        text: the line.
        source: name of the logger that it is said to come from.
    """
    write_record(logging.LogRecord(source, logging.INFO, __file__, 0, text, None, None))


def write_record(record: logging.LogRecord) -> None:
    """The same for a record of any kind."""
    for handler in logging.getLogger().handlers:
        # Without a stream it was closed, or is a file that is to be made at the first line.
        if isinstance(handler, logging.FileHandler) and handler.stream is not None:
            handler.handle(record)
