"""The only door to what ``save_pretrained`` wrote: files are read as data, and nothing in them runs.

A config may name code beside it (``auto_map``), and transformers then asks on standard input, where a user's
texts may lie, whether to run it. Weights that are not safetensors are pickles. Neither is ever asked for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant.errors import UserError


def read_config(path: Path | str, local: bool, **changes: Any) -> Any:
    """The config of a model."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(  # nosec B615  a user names the model, and its files are data
        path, local_files_only=local, trust_remote_code=False, **changes
    )
    check_config(config)
    return config


def check_config(config: Any) -> None:
    """Refuse one that names a kernel of the hub, which is code that transformers would fetch and run."""
    for inner in (getattr(config, "classifier", None), getattr(config, "encoder", None)):
        if isinstance(inner, dict) and "model_type" in inner:  # as models/modeling_calibrant.py keeps them
            from transformers import AutoConfig

            check_config(AutoConfig.for_model(**inner))
    for part in (config, *(getattr(config, name, None) for name in getattr(config, "sub_configs", ()))):
        asked = getattr(part, "_attn_implementation", None)
        if isinstance(asked, str) and "/" in asked:
            raise UserError(
                f"The model {config.name_or_path!r} asks for the code {asked!r} of the hub, and no code of a "
                "model is run; remove attn_implementation from its config.json."
            )


def read_tokenizer(path: Path | str, local: bool) -> Any:
    """The tokenizer of a model."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(  # nosec B615
        path, local_files_only=local, trust_remote_code=False
    )


def read_model(kind: Any, path: Path | str, local: bool, config: Any, **how: Any) -> Any:
    """The model of a ``read_config``, in float32, as ``kind`` has it: an Auto class or an architecture."""
    import torch

    return kind.from_pretrained(  # nosec B615
        path,
        config=config,
        dtype=torch.float32,
        local_files_only=local,
        trust_remote_code=False,
        use_safetensors=True,
        **how,
    )


@contextmanager
def told_in_one_sentence(name: str, absent: str) -> Iterator[None]:
    """What transformers says of a model that it cannot load is long; ``absent`` is said where there is none.

    A damaged config, tokenizer or file of weights raises whatever its reader stumbles over.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if isinstance(error, OSError):
            if not _pickled(Path(name)):
                raise UserError(absent) from error
            reason = "its weights are pickles, which can hold code; save them again as safetensors"
        else:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            reason = lines[0].rstrip(".")
            if "custom code" in reason:
                reason = "it comes with code of its own, which is not run"
        raise UserError(f"The model {name!r} cannot be loaded as a text classifier ({reason}).") from error


def _pickled(folder: Path) -> bool:
    return any(folder.glob("*.bin")) and not any(folder.glob("*.safetensors"))
