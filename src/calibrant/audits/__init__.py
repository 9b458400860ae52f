"""A classifier that somebody else trained: what is asked, what it says, and what would mend it.

    question  the options, and which of them do not go together
    subject   the model itself
    heard     what it says of the texts
    remedy    what dev texts add: calibrators, and advice

This room may not import tasks, nor know of a terminal.
"""
