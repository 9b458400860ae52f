"""From texts and a recipe to a finished run.

    job          one run that is to be trained
    run          the whole of it: its model or its members, then the calibrator
    model        one model: start, probe, fine_tuning are its steps
    start        the model to begin with, and the texts as it reads them
    probe        a linear probe as the head
    fine_tuning  the encoder and the head, with the objective
    calibrating  the calibrator, fitted on dev
    said         what the model has answered on the way
    outcome      how it went, for the record

The training loop itself is ``training/``. This room may not import tasks, nor know of a terminal.
"""
