"""What goes in and out, as ``/docs`` shows it."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(pattern=r"\S", description="Not empty.")]
Pair = Annotated[list[Text], Field(min_length=2, max_length=2, description="A text and its second text.")]


class Question(BaseModel):
    """Texts to classify."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"texts": "My card was swallowed"}]}
    )

    texts: Text | Annotated[list[Text | Pair], Field(min_length=1)] = Field(
        description="One text, or a list of texts; a list of pairs where the run was trained on pairs."
    )
    next: int = Field(default=3, ge=0, le=100, description="How many of the next classes to tell.")
    coverage: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        allow_inf_nan=False,
        description="Add the set of labels that holds the true one for this share of texts, as 0.9.",
    )


class ClassProbability(BaseModel):
    """A class and its probability."""

    label: str
    probability: float


class Answer(BaseModel):
    """What the run says of one text."""

    label: str = Field(description="The most probable class; with `abstain` only the best guess.")
    confidence: float = Field(description="Its probability.")
    familiarity: float | None = Field(
        description="The share of familiar texts at least as strange; null where the run cannot tell."
    )
    abstain: bool = Field(description='True means "I don\'t know".')
    reason: Literal["unsure", "unfamiliar"] | None = Field(description="Why it abstains.")
    next: list[ClassProbability] = Field(description="The next classes, the most probable first.")
    set: list[str] | None = Field(description="With `coverage`: the labels that the text may have.")
    cut: bool = Field(description="Whether the text was longer than the model reads.")
    run: str = Field(description="Digest of the run that answered.")


class Answers(BaseModel):
    """An answer for each text, in their order."""

    answers: list[Answer]


class Problem(BaseModel):
    """What was wrong, in one sentence."""

    detail: str


class Limits(BaseModel):
    """Of one request."""

    model_config = ConfigDict(frozen=True)

    bytes: int = Field(default=1 << 20, description="Of the body.")
    texts: int = Field(default=256, description="In a list.")
    characters: int = Field(default=100_000, description="Of one text.")
    waiting: int = Field(default=1024, description="Texts of all requests that wait at the same time.")
    seconds: float = Field(default=30.0, description="Until the answer.")
    sending_seconds: float = Field(default=10.0, description="For the client to send the request.")


class About(BaseModel):
    """What the page tells of the run."""

    run: str = Field(description="Digest of the run.")
    name: str = Field(description="Its folder.")
    method: str
    labels: list[str]
    text_column: str = Field(description="That of training.")
    pair_column: str | None = Field(description="That of training, of the second text; null without pairs.")
    threshold: float = Field(description="The confidence below which it abstains.")
    threshold_from: Literal["rule", "option", "default"]
    risk: float | None = Field(description="The share of wrong answers that the rule promises to stay below.")
    unfamiliar_below: float | None = Field(
        description="The familiarity below which a text counts as unfamiliar."
    )
    examples: list[str] = Field(description="Texts to try.")
    limits: Limits


class Health(BaseModel):
    """Whether it lives, or is ready."""

    status: str
