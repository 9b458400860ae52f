"""The routes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles

from calibrant import __version__
from calibrant.data.encode import check_texts
from calibrant.decide.sets import SetRule
from calibrant.errors import UserError
from calibrant.service.batcher import Batcher, Full
from calibrant.service.examples import public
from calibrant.service.limits import Body
from calibrant.service.logs import Requests
from calibrant.service.metrics import Metrics
from calibrant.service.model import Model, Said
from calibrant.service.reload import Current
from calibrant.service.schemas import About, Answers, Health, Limits, Problem, Question
from calibrant.service.token import Token

PAGE = Path(__file__).parent / "page"
SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
RETRY = {"Retry-After": "1"}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The body cannot be read."},
    401: {"model": Problem, "description": "The token is missing or wrong."},
    408: {"model": Problem, "description": "The request came too slowly."},
    413: {"model": Problem, "description": "The body, the list or a text is too large."},
    422: {"model": Problem, "description": "Something of the request is not as described here."},
    503: {"model": Problem, "description": "Too many texts are waiting; try again after Retry-After."},
    504: {"model": Problem, "description": "The answer took too long."},
}


@dataclass(eq=False)
class Service:
    """What the routes share."""

    current: Current
    metrics: Metrics
    limits: Limits = field(default_factory=Limits)
    token: str | None = None
    batch: int = 64
    examples: list[str] = field(default_factory=list)  # the run's own, where none are given

    def __post_init__(self) -> None:
        self.batcher: Batcher[Said] = Batcher(
            self.current.answer, self.batch, self.limits.waiting, self.metrics.batch
        )
        self.metrics.queue(lambda: self.batcher.waiting, self.limits.waiting)

    @asynccontextmanager
    async def running(self, app: FastAPI) -> AsyncIterator[None]:
        """Answer, watch the run directory and look for examples, until the server ends."""
        jobs = [asyncio.create_task(job) for job in (self.batcher.run(), self.current.watch(), self._find())]
        self.answering = jobs[0]
        yield
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)

    async def _find(self) -> None:
        if not self.examples:
            self.examples = await asyncio.to_thread(public, self.current.model.run)


def make_app(service: Service) -> FastAPI:
    """The app of a service."""
    app = FastAPI(
        title="calibrant",
        version=__version__,
        summary="A text classifier whose confidence means something.",
        docs_url=None,  # FastAPI's pages load scripts from elsewhere
        redoc_url=None,
        lifespan=service.running,
    )
    app.state.service = service
    limits, metrics = service.limits, service.metrics

    @app.post("/predict", response_model=Answers, responses=_PROBLEMS, summary="Classify texts")
    async def predict(question: Question, request: Request) -> Response:
        """Tell label, confidence, familiarity and whether to abstain, for one text or a list."""
        given = [question.texts] if isinstance(question.texts, str) else question.texts
        texts = _checked(given, limits, service.current.model.reads_pairs)
        try:
            async with asyncio.timeout(limits.seconds):
                said = await service.batcher.ask(texts)
                rules = await _set_rules(said, question.coverage)
        except Full:
            problem = f"{service.batcher.waiting} texts are waiting; try again in a second."
            raise HTTPException(503, problem, RETRY) from None
        except TimeoutError:
            problem = f"No answer within {limits.seconds:g} seconds; send fewer texts at a time."
            raise HTTPException(504, problem) from None
        metrics.said(said)
        request.scope["calibrant"] |= {
            "texts": len(said),
            "abstained": sum(each.decision.abstain for each in said),
            "cut": sum(each.cut for each in said),
            "run": said[0].model.digest,
        }
        answers = Answers.model_construct(
            answers=[each.answer(question.next, rules[each.model]) for each in said]
        )
        return Response(answers.model_dump_json(), media_type="application/json")

    @app.get("/run", responses={401: _PROBLEMS[401]}, summary="What answers")
    async def run() -> About:
        """Tell the run's classes, rule and limits."""
        model = service.current.model
        return About(
            run=model.digest,
            name=model.run.path.absolute().name,
            method=model.run.name,
            labels=list(model.run.label_names),
            text_column=model.run.config.text_column,
            pair_column=model.run.config.pair_column,
            threshold=model.threshold,
            threshold_from=model.threshold_from,
            risk=model.stored.promise.risk if model.stored and model.threshold_from == "rule" else None,
            unfamiliar_below=model.unfamiliar_below,
            examples=service.examples,
            limits=limits,
        )

    @app.get("/healthz", responses={503: {"model": Problem}}, summary="Does it live?")
    async def healthz() -> Health:
        """Answer 503 where nothing can be answered any more."""
        if service.answering.done():
            raise HTTPException(503, "Nothing answers any more; start the service again.")
        return Health(status="ok")

    @app.get("/readyz", responses={503: {"model": Problem}}, summary="May requests come?")
    async def readyz() -> Health:
        """Answer 503 where the queue is full."""
        if service.batcher.waiting >= limits.waiting or service.answering.done():
            raise HTTPException(503, "The queue is full.", RETRY)
        return Health(status="ready")

    @app.get("/metrics", responses={401: _PROBLEMS[401]}, summary="For Prometheus", response_class=Response)
    async def metrics_page() -> Response:
        """Latencies, queue, batches, confidence, familiarity, abstention and the monitor's alarm."""
        return Response(metrics.page(), media_type="text/plain; version=1.0.0; charset=utf-8")

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers=SAFE)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(PAGE / "docs.html", headers=SAFE)

    app.mount("/page", StaticFiles(directory=PAGE))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"detail": _sentence(error)}, 422)

    @app.exception_handler(UserError)
    async def mistaken(request: Request, error: UserError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422)

    # The last that is added is the first that is asked.
    app.add_middleware(Body, limits=limits)
    app.add_middleware(Token, token=service.token)
    app.add_middleware(Requests, metrics=metrics)
    return app


def _checked(given: Sequence[str | list[str]], limits: Limits, pairs: bool) -> list[str]:
    """The texts; refused what no batch should hold: one that fails there would fail with all the others."""
    most = min(limits.texts, limits.waiting)
    if len(given) > most:
        raise HTTPException(413, f"{len(given)} texts are too many for one request; send {most} at most.")
    texts = check_texts(given, pairs)
    for number, text in enumerate(texts, start=1):
        if len(text) > limits.characters:
            problem = f"Text {number} has {len(text)} characters; send {limits.characters} at most."
            raise HTTPException(413, problem)
    return texts


async def _set_rules(said: list[Said], coverage: float | None) -> dict[Model, SetRule | None]:
    """By the models that answered: two of them, where the run was replaced meanwhile."""
    models = {each.model for each in said}
    if coverage is None:
        return dict.fromkeys(models)
    return {model: await asyncio.to_thread(model.set_rule, coverage) for model in models}


def _sentence(error: RequestValidationError) -> str:
    """The first mistake, without what was sent: that may be a text, or no JSON."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return "The body is not JSON."
    if "texts" in first["loc"]:
        return "`texts` must be one text or a list of texts, and none of them empty."
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    told = f"{where}: {first['msg']}" if where else str(first["msg"])
    return told.encode("utf-8", "backslashreplace").decode()[:300]
