"""Many more texts than fit into memory: answered part by part, each written whole or not at all.

    files       which files are meant, and where the answers go: local, or any address that fsspec knows
    pieces      stretches of rows, found once and read from where they begin
    answers     the columns that stand beside those of a table
    statistics  what is kept of the answers, so that `monitor` reads no text again
    part        the answers of one part
    manifest    what a folder of answers is, and how far it is
    run         all parts; engines/: where they are answered

This room may not import tasks, nor know of a terminal.
"""
