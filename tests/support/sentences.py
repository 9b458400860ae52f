"""What a user's mistake looks like on the command line."""


def one_sentence(result: tuple[int, str, str], expected: str) -> None:
    """A mistake gets exit code 2 and this sentence alone; "…" at its end stands for whatever follows."""
    code, out, err = result
    assert (code, out) == (2, ""), err
    (told,) = err.strip("\n").split("\n")  # a bar that was shown before leaves an empty line
    sentence = told.removeprefix("calibrant: ")
    assert sentence != told
    if expected.endswith("…"):
        assert sentence.startswith(expected.removesuffix("…").rstrip())
    else:
        assert sentence == expected


def cases(told: str) -> dict[str, str]:
    """Commands, each on a line that begins with "$ ", and on the line below it the sentence that it gets."""
    lines = [line for line in told.splitlines() if line and not line.startswith("#")]
    commands, sentences = lines[::2], lines[1::2]
    assert all(line.startswith("$ ") for line in commands)
    return {line.removeprefix("$ "): sentence for line, sentence in zip(commands, sentences, strict=True)}
