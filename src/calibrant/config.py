"""What determines a training run."""

import hashlib
import json
import math
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from calibrant.errors import UserError
from calibrant.methods import DEFAULT, METHODS
from calibrant.registry import pick

_JSON = TypeAdapter(dict[str, JsonValue], config=ConfigDict(allow_inf_nan=False))
Settings = Annotated[dict[str, Any], AfterValidator(_JSON.validate_python)]
"""A name, hyper-parameters or both, all of which JSON can hold."""
Name = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, Path) else value)]
"""Of a file, or of something that has no file."""
MOST = 2**31
"""What a count stays below; a number with a thousand digits is a mistake."""


class _Plain(yaml.SafeLoader):
    """YAML without what no setting needs: dates stay words, and there are no aliases to multiply."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("settings have no aliases; write out what it stands for")
        return super().compose_node(parent, index)

    def construct_yaml_int(self, node: Any) -> int:
        if abs(value := int(super().construct_yaml_int(node))) >= 2**63:
            raise yaml.YAMLError("a whole number of more than 18 digits")
        return value


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Plain.add_constructor("tag:yaml.org,2002:int", _Plain.construct_yaml_int)


class RunConfig(BaseModel):
    """Settings of one training run; on a CPU, equal settings, data, versions and threads give equal models.

    >>> RunConfig(dataset="20ng-15").method
    'calibrant'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    # data: a file of the user's own, or a declared dataset
    train: Name | None = None
    dev: Name | None = None
    text_column: str = "text"
    label_column: str = "label"
    pair_column: str | None = None  # of the second text, where texts are pairs
    dataset: str | None = None
    source: str | None = None
    max_train_samples: int | None = Field(None, ge=2, lt=MOST)

    # model
    model: Name = "minilm"
    layers: int | None = Field(None, ge=1, lt=MOST)
    lora: int | None = Field(None, ge=1, lt=MOST)  # the rank of adapters; None: all weights are trained
    lora_targets: str | None = None  # names of linear layers, as in "query,value"; None: all
    max_length: int = Field(128, ge=4, lt=MOST)

    # The method, then what differs from it: for objective and inference a name, hyper-parameters or both, as
    # in {name: mc-dropout, passes: 20}; a name alone may be written as such.
    method: str = DEFAULT
    objective: Settings = Field(default_factory=dict)
    inference: Settings = Field(default_factory=dict)
    calibrator: str | None = None
    start: Literal["probe", "random"] | None = None
    pooling: Literal["native", "declared", "first", "mean", "first+mean"] | None = None
    keep: Literal["interpolation", "refinement", "accuracy"] | None = None
    patience: int | None = Field(None, ge=0, lt=MOST)

    # training
    epochs: int = Field(8, ge=1, lt=MOST)
    batch_size: int = Field(32, ge=1, lt=MOST)
    gradient_accumulation_steps: int = Field(1, ge=1, lt=MOST)
    learning_rate: float | None = Field(None, gt=0)  # None: the method's
    weight_decay: float = Field(0.0, ge=0)
    bf16: bool = False
    gradient_checkpointing: bool = False
    class_weights: Literal["balanced"] | dict[str, float] | None = None  # None: all texts count alike
    seed: int = Field(0, ge=0, lt=2**32)

    def __init__(self, /, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise UserError(_sentence(error)) from None

    # pydantic's own, to pydantic: a record then tells where in it the settings are damaged.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_validator(mode="before")
    @classmethod
    def _known(cls, settings: Any) -> Any:
        for name in settings if isinstance(settings, dict) else ():
            pick("setting", str(name), cls.model_fields)
        return settings

    @field_validator("objective", "inference", mode="before")
    @classmethod
    def _a_name_alone(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @field_validator("class_weights", mode="before")
    @classmethod
    def _numbers_above_0(cls, value: Any) -> Any:
        if value in (None, "balanced"):
            return value
        if not isinstance(value, dict):
            raise ValueError("expected balanced, or a weight for each label, as in spam=5")
        for label, weight in value.items():
            number = isinstance(weight, int | float) and not isinstance(weight, bool)
            if not (number and 0 < weight < math.inf):
                raise ValueError(f"the weight of {label!r} must be a number above 0")
        return {str(label): float(weight) for label, weight in value.items()}

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if (self.train is None) == (self.dataset is None):
            raise ValueError("give either a training file (--train) or the name of a dataset (--dataset)")
        if self.dev is not None and self.train is None:
            raise ValueError("a dev file (--dev) goes with a training file (--train)")
        if self.source is not None and self.dataset is None:
            raise ValueError("a source (--source) goes with a dataset (--dataset)")
        if self.pair_column is not None and self.train is None:
            raise ValueError("a second text (--pair-column) goes with a training file (--train)")
        if self.lora_targets is not None and self.lora is None:
            raise ValueError("layers for adapters (--lora-targets) go with the adapters' rank (--lora)")
        return self

    def __repr_args__(self) -> Any:
        """Only what differs from the defaults."""
        return self.model_dump(exclude_defaults=True).items()

    @classmethod
    def read(cls, path: Path | str) -> dict[str, Any]:
        """The settings in a YAML or JSON file."""
        try:
            settings = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_Plain)  # nosec B506  a safe one
        except OSError as error:
            why = "check the path" if isinstance(error, FileNotFoundError) else error.strerror
            raise UserError(f"No config file {str(path)!r}; {why}.") from error
        except RecursionError as error:
            raise UserError(f"{path}: nested too deeply for settings; write one a line.") from error
        except (yaml.YAMLError, ValueError) as error:  # also of numbers with more digits than Python reads
            raise UserError(f"{path}: not YAML or JSON ({' '.join(str(error).split())}).") from error
        if not isinstance(settings, dict) or not all(isinstance(name, str) for name in settings):
            raise UserError(f"{path}: expected settings such as `epochs: 8`, one a line.")
        return settings

    def write(self, path: Path | str) -> None:
        """Only what differs from the defaults, as YAML."""
        Path(path).write_text(yaml.safe_dump(self.model_dump(exclude_defaults=True)), encoding="utf-8")

    def fingerprint(self, **more: Any) -> str:
        """A hash of the settings and of whatever else determines the run."""
        settings = self.model_dump()
        # Runs from before these existed are found again.
        later_ones = ("inference", "calibrator", "start", "pooling", "keep", "patience")
        for later in (*later_ones, "lora", "lora_targets", "pair_column", "class_weights"):
            if settings[later] in (None, {}):
                del settings[later]
        if settings["learning_rate"] is None and self.method in METHODS:  # what had once stood here for all
            settings["learning_rate"] = METHODS[self.method].learning_rate
        canonical = json.dumps({**settings, **more}, sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _sentence(error: ValidationError) -> str:
    """The first of what is wrong, with the option of the command line that sets it."""
    first = error.errors()[0]
    option = f"--{'.'.join(map(str, first['loc'])).replace('_', '-')}: " if first["loc"] else ""
    message = first["msg"].removeprefix("Value error, ").removesuffix(".")
    value = repr(first["input"])
    got = f", got {value if len(value) < 200 else value[:200] + '…'}" if first["loc"] else ""
    return f"{option}{message[0].upper()}{message[1:]}{got}."
