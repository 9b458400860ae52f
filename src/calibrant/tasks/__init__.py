"""One file per verb: ``calibrant X`` on the command line is ``tasks/X.py`` is ``calibrant.X(...)``."""
