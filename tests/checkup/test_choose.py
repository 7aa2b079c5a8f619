# SPDX-License-Identifier: Apache-2.0
"""`--backend auto`: the fastest back end that is right, known at once where there is no GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from splatcert import cli
from splatcert.checkup import choose
from splatcert.checkup.agreement import Agreement
from splatcert.checkup.choose import Choice, cache_file, fastest_backend
from splatcert.checkup.diagnose import Finding
from splatcert.checkup.machine import Adapter
from splatcert.checkup.speed import Speed
from splatcert.commands import engines
from splatcert.commands.engines import CertifiedEngineOptions, EngineOptions, started
from splatcert.errors import OptionError
from splatcert.raster.render import BackendError

FINE = Agreement(1e-6, 1e-7, 0.0, 1e-8, True, True)
CARD = Adapter("A card", "DiscreteGPU", "Vulkan 1.3")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def examined(monkeypatch):
    """A machine with a GPU; what each back end is found to be, and how often it was asked."""
    asked = []
    found = {"cpu": (10.0, ()), "gpu": (50.0, ())}

    def examine(backend, scenes):
        asked.append(backend)
        rate, faults = found[backend]
        speed = Speed(rate, rate, rate, "a scene")
        return Finding(backend=backend, agreement=FINE, faults=faults, speed=speed)

    monkeypatch.setattr(choose, "examine", examine)
    monkeypatch.setattr(choose, "gpu_adapters", lambda: (CARD,))
    monkeypatch.setattr(choose, "cuda_adapters", lambda: ())
    return found, asked


def test_the_fastest_is_picked_once_per_machine(examined):
    asked = examined[1]
    assert fastest_backend().backend == "gpu"
    assert "gpu 50 queries/s" in fastest_backend().why
    assert asked == ["cpu", "gpu"]  # the second time it is known
    assert json.loads(cache_file().read_text())


@pytest.mark.parametrize(
    ("gpu", "why"), [((50.0, ("off",)), "gpu disagrees"), ((5.0, ()), "gpu 5")]
)
def test_a_wrong_or_slower_device_is_not_picked(examined, gpu, why):
    examined[0]["gpu"] = gpu
    choice = fastest_backend()
    assert choice.backend == "cpu" and why in choice.why


def test_another_driver_is_measured_again(examined, monkeypatch):
    fastest_backend()
    newer = replace(CARD, driver="Vulkan 1.4")
    monkeypatch.setattr(choose, "gpu_adapters", lambda: (newer,))
    fastest_backend()
    assert examined[1] == ["cpu", "gpu"] * 2


@pytest.mark.parametrize("content", ["", "[]", "{", '{"backend": 3}', "\x00"])
def test_a_spoilt_cache_is_measured_again(examined, content):
    cache_file().parent.mkdir(parents=True)
    cache_file().write_text(content)
    assert fastest_backend().backend == "gpu"


def test_a_cache_that_names_a_device_that_is_gone_is_not_believed(examined):
    fastest_backend()
    (key,) = json.loads(cache_file().read_text())
    cache_file().write_text(json.dumps({key: {"backend": "cuda", "why": "it was fast"}}))
    assert fastest_backend().backend == "gpu"


def test_a_cache_that_cannot_be_written_does_not_matter(examined, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert fastest_backend().backend == "gpu"


def test_software_on_the_processor_is_never_picked(examined, monkeypatch):
    software = Adapter("llvmpipe", "CPU", "Vulkan")
    monkeypatch.setattr(choose, "gpu_adapters", lambda: (software,))
    assert fastest_backend() == Choice("cpu", "no GPU found")
    assert examined[1] == [] and not cache_file().exists()


def test_without_wgpu_auto_is_the_cpu_and_imports_no_gpu_library():
    code = (
        "import sys; sys.modules['wgpu'] = None\n"
        "import importlib.util as u; found = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'wgpu' else found(name, *a)\n"
        "from splatcert.commands.engines import started\n"
        "engine = started('auto', 1)\n"
        "print(engine.backend, engine.words)\n"
        "try:\n    started('gpu', 1)\nexcept Exception as error:\n    print(error)\n"
        "print('gsplat' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, *rest = done.stdout.splitlines()
    assert first.startswith("cpu cpu (") and first.endswith("picked by auto: no GPU found")
    assert "splatcert[gpu]" in "".join(rest) and rest[-1] == "False"


def test_auto_says_what_it_picked(monkeypatch):
    monkeypatch.setattr(choose, "fastest_backend", lambda: Choice("cpu", "no GPU found"))
    assert started("auto", 1).words.endswith("picked by auto: no GPU found")


class TestFallback:
    """A device that fails: refused, or started again with cpu if asked."""

    def failing(self, engine):
        if engine.backend != "cpu":
            raise BackendError("the GPU ran out of memory while blending.\n  Close programs.")
        return engine.backend

    def test_it_is_refused_by_default(self):
        with pytest.raises(BackendError, match="out of memory"):
            EngineOptions(backend="reference").attempt(self.failing)

    def test_it_starts_again_with_cpu_if_asked(self, capsys):
        assert EngineOptions(backend="reference", fallback=True).attempt(self.failing) == "cpu"
        assert "out of memory while blending; starting again with cpu" in capsys.readouterr().err

    def test_a_missing_device_counts(self, monkeypatch, capsys):
        gone = "the back end 'cuda' requires a CUDA device.\n  Buy one."
        monkeypatch.setattr("splatcert.raster.render.unavailable", {"cuda": gone}.get)
        with pytest.raises(BackendError, match="requires a CUDA device"):
            EngineOptions(backend="cuda").attempt(self.failing)
        assert EngineOptions(backend="cuda", fallback=True).attempt(self.failing) == "cpu"

    def test_the_certified_back_end_falls_back_to_a_certificate_carried_over(self):
        asked = []

        def run(engine):
            asked.append(engine.asked)
            if engine.asked is None:
                raise BackendError("the GPU was lost.")

        CertifiedEngineOptions(fallback=True).attempt(run)
        assert asked == [None, "cpu"]


def test_verify_takes_a_back_end_only_with_the_capture(capsys):
    with pytest.raises(OptionError):
        from splatcert.commands.certificates.verify import Verify

        Verify(certificate="it", engine=CertifiedEngineOptions(backend="cpu"))  # pyright: ignore
    assert cli.main(["verify", "it", "--backend", "cpu"]) == 2
    assert "--backend goes with --data" in capsys.readouterr().err
    assert engines.described("reference") == "reference (plain torch)"
