"""What a user can get wrong, and what the machine may refuse, told in one sentence."""


class UserError(ValueError):
    """A mistake of the caller's: the message names what came, what was expected and what to do.

    The command line prints it without a traceback and exits with code 2.
    """


class Diverged(UserError):
    """A training whose loss is no longer a number; with other hyper-parameters it may be."""


class Busy(UserError):
    """Another process is at work there."""


class NotWritten(UserError):
    """A disk that is full, or that may not be written to."""


class NoMemory(UserError):
    """Work that needs more memory than there is."""
