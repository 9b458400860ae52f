"""The paper's experiments: what to run, what was measured, and the tables and figures made of it."""
