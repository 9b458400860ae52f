"""``calibrant export``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.options import Json, RunFolder
from calibrant.cli.printing import say, say_json


def export(
    run: RunFolder,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")],
    onnx: Annotated[
        bool,
        typer.Option("--onnx", help="Also write model.onnx, with the whole decision in the graph."),
    ] = False,
    int8: Annotated[
        bool,
        typer.Option(
            "--int8",
            help="Also write model_quantized.onnx, in integers of 8 bits, with temperature and familiarity "
            "fitted again on the run's own texts.",
        ),
    ] = False,
    max_loss: Annotated[
        float,
        typer.Option(min=0, max=1, help="Refuse --int8 if it loses more accuracy or ECE than this on dev."),
    ] = 0.01,
    push: Annotated[
        str | None,
        typer.Option(
            metavar="USER/MODEL", help="Also put it on the Hugging Face hub; a new repository is private."
        ),
    ] = None,
    license_: Annotated[
        str | None, typer.Option("--license", help="For the card, as in apache-2.0 [the encoder's].")
    ] = None,
    json_: Json = False,
) -> None:
    """Write a run as a model that needs no calibrant: transformers, ONNX, the hub.

    Plain transformers where the head is transformers' own (--pooling native) and the calibrator is linear.
    Else the folder brings a file of code, for pipeline(…, trust_remote_code=True).

    \b
    Example:  calibrant export runs/tickets tickets-model --onnx
    """
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.tasks import export as task

        done = task.export(
            run,
            folder=folder,
            onnx=onnx,
            int8=int8,
            max_loss=max_loss,
            push=push,
            license=license_,
            progress=progress,
        )
    if json_:
        say_json({"run": str(run)} | asdict(done) | {"folder": str(folder)})
        return
    kind, trust = "plain transformers model", ""
    inside = "no calibrator" if done.calibrator is None else f"{done.calibrator} folded in"
    if done.needs_code:
        kind, trust = "transformers model with modeling_calibrant.py", ", trust_remote_code=True"
        inside = "no calibrator" if done.calibrator is None else f"{done.calibrator} inside"
    say(f"{folder}: {kind}, {inside}; answers equal to {done.difference:.0e}")
    if done.onnx_difference is not None:
        say(f"{folder / 'model.onnx'}: answers equal to {done.onnx_difference:.0e}")
    if done.int8 is not None:
        say(f"{folder / 'model_quantized.onnx'}: {done.int8.in_words()}")
    if done.address is not None:
        say(f"On the hub: {done.address}")
    say(f'In Python: pipeline("text-classification", "{push or folder}"{trust}, truncation=True)')
