"""What a user can get wrong, told in one sentence."""


class UserError(ValueError):
    """A mistake of the caller's: the message names what came, what was expected and what to do.

    The command line prints it without a traceback and exits with code 2.
    """


class Diverged(UserError):
    """A training whose loss is no longer a number; with other hyper-parameters it may be."""
