"""Commands that are killed, raced and starved, over and over: each must end as if nothing had happened.

    make soak                                    all of it
    python -m soak --only kills --kills 5        a part

One file an idea: kills (at random moments), operations (at every file operation), pairs (two trainings, one
folder), races (updates of one run), full (disks of several sizes). ``commands`` has the commands, ``fork``
runs them from a warm process, since to load torch takes longer than most of them.
"""
