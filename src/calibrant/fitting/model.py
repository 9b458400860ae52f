"""One training of one model, from its start to what is kept of it."""

from calibrant._system import processes
from calibrant._system.quiet import quiet
from calibrant.fitting.fine_tuning import fine_tune
from calibrant.fitting.job import Job
from calibrant.fitting.probe import fit_head, keep_probe
from calibrant.fitting.said import Said
from calibrant.fitting.start import load_start
from calibrant.runs.store import Run
from calibrant.training import Watch


@quiet()
def fit_model(run: Run, job: Job) -> tuple[Run, Said]:
    """The run with its trained model, and what that has said already."""
    method = job.recipe.method
    start = processes.one_first(lambda: load_start(job))
    watch = Watch(job.progress, job.label)  # loading is no part of the training's time
    texts, said = start.encoded(job.splits, job.config.max_length), Said()
    if method.start == "probe":
        said = fit_head(job, start, texts)
    if method.frozen:
        return keep_probe(run, job, start, texts, said, watch), said
    kept = fine_tune(run, job, start, texts, watch)
    return kept, said if kept.training.best_epoch == 0 else Said()
