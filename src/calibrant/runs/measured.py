"""What ``metrics.json`` must hold for a model card to tell of it."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Share = Annotated[float, Field(ge=0, le=1)]


class _Part(BaseModel):
    # There is more in it, which nobody reads back.
    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class _Detection(_Part):
    nbaucc: Share = Field(alias="nbaucc_0.5")


class _Abstention(_Part):
    coverage: Share
    risk: Share | None
    ood_answered: Share | None


class _Metrics(_Part):
    n_test: int
    accuracy: Share
    ece: Share
    mean_confidence_test: Share
    misclassification: _Detection
    ood: _Detection | None
    n_ood: int | None = None
    mean_confidence_ood: Share | None = None
    abstention: _Abstention = Field(default=None)  # type: ignore[assignment]  # not there, or whole


class _About(_Part):
    source: str


class _Measured(_Part):
    metrics: _Metrics
    measured_on: dict[str, _About]

    @model_validator(mode="after")
    def _all_named(self) -> Self:
        needed = {"test"} if self.metrics.ood is None else {"test", "ood"}
        if not needed <= self.measured_on.keys():
            raise ValueError("it does not tell on which texts")
        if "ood" in needed and None in (self.metrics.n_ood, self.metrics.mean_confidence_ood):
            raise ValueError("n_ood or mean_confidence_ood is missing")
        return self


def checked(measured: Any) -> dict[str, Any]:
    """The same; ValueError where a figure is missing or out of range."""
    try:
        _Measured.model_validate(measured)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from error
    return dict(measured)
