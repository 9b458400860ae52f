"""What a user can get wrong, and what the machine may refuse, told in one sentence."""

import re

# Controls (escape sequences begin with one), line and paragraph separators, halves of characters, and the
# marks that turn the direction of what follows them.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(data: object) -> str:
    r"""Data in one line, with what a terminal or a reader would obey instead of show as in a Python string.

    Labels, texts and file names come from anywhere. All that is shown of them goes through here.

    >>> print(visible("billing\n# Abstention\x1b[2J"))
    billing\n# Abstention\x1b[2J
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), str(data))


class UserError(ValueError):
    """A mistake of the caller's: the message names what came, what was expected and what to do.

    The command line prints it without a traceback and exits with code 2.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(visible(" ".join(sentence.splitlines())))


class Diverged(UserError):
    """A training whose loss is no longer a number; with other hyper-parameters it may be."""


class Busy(UserError):
    """Another process is at work there."""


class NotWritten(UserError):
    """A disk that is full, or that may not be written to."""


class NoMemory(UserError):
    """Work that needs more memory than there is."""


class Elsewhere(UserError):
    """Another process of the same training failed, and says so itself."""


class Lost(UserError):
    """Another process of the same training ended without a word."""
