"""The one exception for mistakes that the person at the keyboard can mend."""


class UserError(Exception):
    """A mistake in the input or the configuration, told in one line: what is wrong, where, and what to do.

    The command-line doors print the message without a traceback and exit with code 1.
    """
