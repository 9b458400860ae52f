"""``calibrant export``."""

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.options import Json, RunFolder
from calibrant.cli.printing import say, say_json


def export(
    run: RunFolder,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")],
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Also write model.onnx, checked against torch with onnxruntime.")
    ] = False,
    json_: Json = False,
) -> None:
    """Write a run as a plain transformers model, with its calibrator folded into the last layer.

    \b
    Example:  calibrant export runs/tickets tickets-model --onnx
    """
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.tasks import export as task

        done = task.export(run, folder=folder, onnx=onnx, progress=progress)
    if json_:
        result = {"run": str(run), "folder": str(folder), "calibrator": done.calibrator}
        differences = {"difference": done.difference, "onnx_difference": done.onnx_difference}
        say_json(result | differences)
        return
    inside = "no calibrator" if done.calibrator is None else f"{done.calibrator} folded in"
    say(f"{folder}: plain transformers model, {inside}; probabilities equal to {done.difference:.0e}")
    if done.onnx_difference is not None:
        say(f"{folder / 'model.onnx'}: probabilities equal to {done.onnx_difference:.0e}")
    say(f'In Python: pipeline("text-classification", "{folder}", truncation=True)')
