"""What is to be audited: the options as a user types them, which of them go together, and their texts."""

import shlex
from dataclasses import dataclass, fields
from pathlib import Path

from calibrant.data.files import read_file
from calibrant.data.splits import warn_of_overlap
from calibrant.errors import UserError
from calibrant.exports.plain import check_target
from calibrant.runs.place import FILE as RECORD
from calibrant.types import Texts

FEWEST_DEV_TEXTS = 20


@dataclass(frozen=True)
class Question:
    """The arguments of ``audit``."""

    model: str | None
    test: str
    ood: str | None = None
    dev: str | None = None
    train: str | None = None
    text_column: str = "text"
    label_column: str = "label"
    pair_column: str | None = None
    max_length: int | None = None
    export: str | None = None
    probabilities: str | None = None
    dev_probabilities: str | None = None
    ood_probabilities: str | None = None

    def command(self, verb: str, **changes: str | None) -> str:
        """A command line with the options that were given, and changes to them; None leaves one out."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        defaults = {field.name: field.default for field in fields(self)}
        options = {name: value for name, value in given.items() if value != defaults[name]} | changes
        words = [
            word
            for name, value in options.items()
            if value is not None
            for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        return shlex.join(["calibrant", verb, *words])

    def check(self) -> None:
        """Refuse options that do not go together."""
        given = self.probabilities
        if (self.model is None) == (given is None):
            raise UserError(
                "Give either --model, or --probabilities of another classifier for the texts of --test."
            )
        if given is not None:
            for option in ("train", "max_length", "export"):
                if getattr(self, option) is not None:
                    raise UserError(
                        f"--{option.replace('_', '-')} asks for the model itself, and --probabilities are "
                        "all that is known of it; leave it out, or give --model."
                    )
        for part in ("dev", "ood"):
            file, said = getattr(self, part), getattr(self, f"{part}_probabilities")
            if said is not None and (file is None or given is None):
                missing = "--probabilities" if given is None else f"--{part}"
                raise UserError(f"--{part}-probabilities goes with {missing}; name a file.")
            if given is not None and file is not None and said is None:
                raise UserError(
                    f"--{part} has no --{part}-probabilities: what the classifier says of its texts."
                )
        if self.model is not None and (Path(self.model) / RECORD).exists():
            raise UserError(
                f"{self.model} is a run of calibrant's; measure it with `calibrant evaluate`, or audit its "
                f"plain model, {self.model}/model."
            )
        if self.train is not None and self.dev is None:
            raise UserError("--train is where familiarity begins, which is fitted on --dev; name one.")
        if self.export is not None:
            if self.dev is None:
                raise UserError(
                    "--export writes the model with a calibrator, which is fitted on --dev; name one."
                )
            check_target(self.export)

    def read(self) -> dict[str, Texts]:
        """Test, and the others where they are given; refuse first what would fail after all the work."""
        columns = self.text_column, self.label_column, self.pair_column
        texts = {"test": read_file(self.test, *columns, labelled=True)}
        if self.ood is not None:
            texts["ood"] = read_file(self.ood, *columns)
        if self.train is not None:
            texts["train"] = read_file(self.train, *columns, labelled=True)
        if self.dev is not None:
            texts["dev"] = read_file(self.dev, *columns, labelled=True)
            if len(texts["dev"]) < FEWEST_DEV_TEXTS:
                raise UserError(
                    f"{self.dev}: {len(texts['dev'])} dev texts are too few to choose a calibrator by; give "
                    f"{FEWEST_DEV_TEXTS} or more, better some hundreds."
                )
            warn_of_overlap(texts["dev"], texts["test"])
        return texts
