"""Arguments of a trainer for a step or a few, on the CPU."""

from transformers import TrainingArguments


def arguments(tmp_path, **more):
    settings = {
        "output_dir": str(tmp_path),
        "max_steps": 1,
        "learning_rate": 1e-2,
        "optim": "sgd",
        "lr_scheduler_type": "constant",
        "report_to": "none",
        "disable_tqdm": True,
        "save_strategy": "no",
        "use_cpu": True,
        "dataloader_pin_memory": False,
        "per_device_train_batch_size": 32,
    }
    return TrainingArguments(**{**settings, **more})
