"""Where models run: there is no accelerator here, so torch is told of one."""

import pytest
import torch

from calibrant._system.device import device, device_name, has_bf16, work_seconds


@pytest.fixture
def accelerator(monkeypatch):
    def there_is(kind):
        monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device(kind))

    return there_is


def test_the_cpu_has_no_name():
    assert (device(), device_name()) == (torch.device("cpu"), "")
    assert not has_bf16()


def test_an_accelerator_is_taken_and_named(accelerator, monkeypatch):
    accelerator("mps")
    assert (device(), device_name()) == (torch.device("mps"), "mps")
    accelerator("cuda")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")
    assert device_name() == "Tesla T4"


def test_imitated_bf16_does_not_count(accelerator, monkeypatch):
    accelerator("cuda")
    for real in (False, True):

        def supported(including_emulation=True, real=real):
            return including_emulation or real

        monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
        assert has_bf16() is real


def test_work_is_timed_by_the_process_here_and_by_the_wall_there(accelerator, monkeypatch):
    monkeypatch.setattr("time.process_time", lambda: 10.0 * torch.get_num_threads())
    monkeypatch.setattr("time.perf_counter", lambda: 3.0)
    assert work_seconds() == 10.0
    accelerator("cuda")
    assert work_seconds() == 3.0
