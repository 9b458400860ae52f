"""What a user can get wrong, told in one sentence."""


class UserError(ValueError):
    """A mistake of the caller's: the message names what came, what was expected and what to do.

    The command line prints it without a traceback and exits with code 2.
    """
