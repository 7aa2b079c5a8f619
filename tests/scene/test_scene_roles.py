# SPDX-License-Identifier: Apache-2.0
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from scene_writers import write_colmap
from splatcert.camera import Camera
from splatcert.errors import InputError
from splatcert.scene.load import load_scene
from splatcert.scene.roles import (
    CalibrationView,
    EvaluationView,
    LabelError,
    LabelLedger,
    LabelledView,
    LabelUse,
    PixelSource,
    QueryView,
    SourceView,
    TrainingView,
    require_labels,
)
from splatcert.scene.scene import TensorPixels, scene_from_tensors
from waiting import PATIENCE


@pytest.fixture
def camera():
    return Camera(world_to_camera=torch.eye(4).numpy(), fx=9, fy=9, cx=4, cy=3, width=8, height=6)


@pytest.fixture
def scene(tmp_path):
    write_colmap(tmp_path)
    return load_scene(tmp_path, holdout=3)


def test_a_query_has_no_image_and_none_can_be_put_on_it(scene):
    for view in scene.held_out:
        assert type(view) is QueryView
        for name in ("image", "mask", "source", "pixels", "label", "photo"):
            assert not hasattr(view, name)
            with pytest.raises((AttributeError, TypeError)):
                setattr(view, name, lambda: torch.zeros(6, 8, 3))
            with pytest.raises((AttributeError, TypeError)):
                object.__setattr__(view, name, 1)
        assert not hasattr(view, "__dict__")


def test_a_query_is_no_labelled_view_and_the_other_way_round(scene):
    query, training = scene.held_out[0], scene.training[0]
    assert not isinstance(query, LabelledView)
    assert not isinstance(training, QueryView)
    stripped = training.query()
    assert type(stripped) is QueryView and stripped.name == training.name


def test_labels_are_required_by_role(scene):
    query, training = scene.held_out[0], scene.training[0]
    assert require_labels(training) is training
    assert require_labels(training, TrainingView) is training
    assert require_labels(training, CalibrationView, TrainingView) is training
    for wrong in (query, "photo_00.png", None):
        with pytest.raises(TypeError, match="labels of a TrainingView are required"):
            require_labels(wrong, TrainingView)
    with pytest.raises(TypeError, match="got TrainingView"):
        require_labels(training, CalibrationView)


def test_a_label_without_a_role_cannot_be_made(camera):
    source = TensorPixels(torch.zeros(6, 8, 3))
    with pytest.raises(TypeError, match="must have a role"):
        LabelledView("a", camera, source)
    assert isinstance(source, PixelSource)
    view = TrainingView("a", camera, source)
    assert view.mask().all() and not view.has_mask
    with pytest.raises(AttributeError):
        view.name = "b"  # type: ignore[misc]


def test_labels_are_handed_out_with_a_role_and_written_down(scene):
    held_out = scene.held_out
    assert held_out.ledger.entries == ()
    first = held_out.reveal("calibration", ["photo_03.png"], by="certify")
    rest = held_out.reveal("evaluation", by="the table")
    source = held_out.reveal("source", ["photo_06.png"], by="learn")
    assert [type(v) for v in (*first, rest[0], *source)] == [
        CalibrationView,
        EvaluationView,
        SourceView,
    ]
    assert first[0].image().shape == (48, 64, 3)

    def use(order, purpose, by, views):
        return LabelUse(order=order, purpose=purpose, by=by, views=views)

    every = ("photo_00.png", "photo_03.png", "photo_06.png")
    assert held_out.ledger.entries == (
        use(0, "calibration", "certify", ("photo_03.png",)),
        use(1, "evaluation", "the table", every),
        use(2, "source", "learn", ("photo_06.png",)),
    )
    assert held_out.ledger.views_seen("calibration") == {"photo_03.png"}
    assert held_out.ledger.views_seen() == set(held_out.names)


def test_looking_at_queries_and_training_leaves_no_entry(scene):
    assert [view.name for view in scene.held_out] == list(scene.held_out.names)
    assert scene.held_out["photo_03.png"] is scene.held_out[1]
    assert len(scene.held_out[:2]) == 2 and len(scene.held_out.cameras) == 3
    scene.training[0].image()
    assert scene.held_out.with_photo == scene.held_out.names
    assert scene.held_out.ledger.entries == ()


def test_ledger_entries_cannot_be_changed():
    ledger = LabelLedger()
    entry = ledger.record("calibration", "x", ["a"])
    with pytest.raises(AttributeError):
        entry.by = "y"  # type: ignore[misc]
    assert isinstance(ledger.entries, tuple)


def test_refused_requests_leave_no_entry(scene, tmp_path):
    with pytest.raises(LabelError, match=r"not held out: photo_01\.png"):
        scene.held_out.reveal("calibration", ["photo_01.png"], by="x")
    with pytest.raises(LabelError, match="unknown purpose 'curiosity'"):
        scene.held_out.reveal("curiosity", by="x")
    (tmp_path / "images/photo_03.png").unlink()
    held_out = load_scene(tmp_path, holdout=3).held_out
    assert held_out.with_photo == ("photo_00.png", "photo_06.png")
    with pytest.raises(LabelError, match=r"1 of 3 held-out photos is missing: photo_03\.png"):
        held_out.reveal("calibration", by="x")
    assert scene.held_out.ledger.entries == held_out.ledger.entries == ()
    assert len(held_out.reveal("calibration", held_out.with_photo, by="x")) == 2


def test_scenes_travel_to_other_processes_without_their_pixels(scene):
    scene.training[0].image()
    scene.held_out.reveal("calibration", by="x")
    size = len(pickle.dumps(scene))
    copy = pickle.loads(pickle.dumps(scene))
    assert size < 200_000
    assert torch.equal(copy.training[0].image(), scene.training[0].image())
    assert copy.held_out.ledger.entries == scene.held_out.ledger.entries
    assert type(copy.held_out[0]) is QueryView


def test_scenes_made_in_memory(camera):
    images = {name: torch.rand(6, 8, 3) for name in "abc"}
    masks = {"a": torch.zeros(6, 8, dtype=torch.bool)}
    cameras = dict.fromkeys("abcd", camera)
    scene = scene_from_tensors(cameras, images, held_out="cd", masks=masks)
    assert scene.training.names == ("a", "b") and scene.held_out.names == ("c", "d")
    assert torch.equal(scene.training["b"].image(), images["b"])
    assert not scene.training["a"].mask().any() and scene.training["b"].mask().all()
    assert scene.held_out.with_photo == ("c",)
    assert scene.describe()["format"] == "memory"
    with pytest.raises(InputError, match="'b' has shape"):
        scene_from_tensors(cameras, {**images, "b": torch.rand(8, 6, 3)})
    with pytest.raises(InputError, match="no picture: d"):
        scene_from_tensors(cameras, images)


SNIPPET = """
from splatcert.scene.load import load_scene
from splatcert.scene.roles import CalibrationView, QueryView, TrainingView, require_labels

def fit(views: list[TrainingView]) -> None: ...

scene = load_scene("x")
query = scene.held_out[0]
fit(list(scene.training))
ok: CalibrationView = scene.held_out.reveal("calibration", by="x")[0]
also: TrainingView = require_labels(scene.training[0], TrainingView)
query.image()  # wrong
fit([query])  # wrong
fit([ok])  # wrong
require_labels(query)  # wrong
scene.held_out[0].source  # wrong
"""


@pytest.mark.slow
def test_breaking_the_hypothesis_does_not_type_check(tmp_path):
    """Exactly the lines marked wrong are errors to the type checker."""
    pyright = shutil.which("pyright", path=str(Path(sys.executable).parent)) or shutil.which(
        "pyright"
    )
    if pyright is None:
        pytest.skip("pyright is not installed")
    source = Path(__file__).resolve().parents[2] / "src"
    (tmp_path / "snippet.py").write_text(SNIPPET)
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{source}"]}}')
    run = subprocess.run(
        [pyright, "--pythonpath", sys.executable, "-p", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    flagged = {int(line.split(":")[1]) for line in run.stdout.splitlines() if "snippet.py:" in line}
    expected = {k for k, line in enumerate(SNIPPET.splitlines(), 1) if line.endswith("# wrong")}
    assert flagged == expected, run.stdout
