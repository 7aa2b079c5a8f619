# SPDX-License-Identifier: Apache-2.0
"""A capture, a model, a certificate or a view predictor, described in labelled lines."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splatcert.config import CertifyConfig
from splatcert.conformal.ranks import views_needed
from splatcert.console import say, say_all, show_table
from splatcert.errors import listed
from splatcert.report.content import plural
from splatcert.report.words.summary import closing_lines, detail_lines
from splatcert.scene.split import DEFAULT_EVERY

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate
    from splatcert.difficulty.predictor import ViewPredictor
    from splatcert.raster.placement import Placement
    from splatcert.scene.scene import Scene
    from splatcert.splats.files import ModelInfo

FRAMES = {
    "data": "the capture's own",
    "model": "the trainer's own; the transform back to the capture is not stored",
    "unknown": "not stored; pass --data CAPTURE to compare renders with its photos",
}
CARD_HEADINGS = ("scene", "views", "rank corr.", "a b~", "a only", "b~ only", "oracle a")
USUAL_ALPHA = Fraction(CertifyConfig.alpha)
SMALLEST_EVERY = 2
"""The most that `--holdout N` can hold out is every second photo."""
MOST_KINDS = 4
"""Sizes or lenses that are named one by one."""
SMALL = 100_000
"""Bytes below which a file's size is shown in kilobytes."""
UNREADABLE = (AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""What reading a malformed predictor card may raise."""


def capture_lines(scene: Scene) -> dict[str, str]:
    """What is in a capture, and how it is split."""
    known: dict[str, Any] = scene.describe()
    points = known["points"]
    cloud = "none"
    if points is not None:
        error = points["mean reprojection error"]
        cloud = f"{points['count']:,}" + (f", reprojection error {error:.2f} px" if error else "")
    missing = known["held-out photos missing"]
    return _nonempty(
        {
            "Capture": f"{scene.format}, read from {known['source']}",
            "Registered": "" if scene.registered is None else scene.registered.words(),
            "Views": f"{len(scene.training)} for training, {len(scene.held_out)} held out",
            "Split": known["split"],
            "Hold-out": "" if scene.holdout_check is None else scene.holdout_check.words,
            "Calibration": calibration_words(scene),
            "Unused": f"{known['unused']} photos in neither part" if known["unused"] else "",
            "Missing": f"{missing} held-out photos" if missing else "",
            "Size": counted(known["sizes"], "pixels"),
            "Lens": counted(known["lenses"], ""),
            "Masks": f"on {known['masks']} photos" if known["masks"] else "",
            "Background": _colour(known["background"]),
            "Points": cloud,
            "Extent": f"{scene.extent:.3g} in the capture's units",
            "Frame": "the capture's own",
            "Next": f"splatcert train {scene.path} -o RUN; or, with a model of this capture, "
            f"splatcert certify {scene.path} MODEL -o CERT",
        }
    )


def calibration_words(scene: Scene) -> str:
    """What to do where too few photos are held out for the usual level; empty where enough are."""
    needed, held_out = views_needed(USUAL_ALPHA), len(scene.held_out.with_photo)
    if held_out >= needed:
        return ""
    total = len(scene.training) + held_out
    short = f"{plural(held_out, 'photo')} held out; alpha = {USUAL_ALPHA} requires {needed}"
    every = (total - 1) // (needed - 1)
    if every < SMALLEST_EVERY:
        return (
            f"{short}, and even --holdout 2 would hold out only {(total + 1) // 2} of {total}: "
            "photograph more views, or certify with a larger --alpha"
        )
    every = min(every, DEFAULT_EVERY)
    return (
        f"{short}. Train with --holdout {every}, which holds out {-(-total // every)} of {total}, "
        "or photograph more views"
    )


def model_lines(info: ModelInfo, placed: Placement | None = None) -> dict[str, str]:
    """What is in a model file, what its training run adds, and how it fits a capture."""
    size = sum(file.stat().st_size for file in info.files)
    step = f", iteration {info.iteration}" if info.iteration is not None else ""
    can_rebuild = info.format == "gsplat" and info.frame == "model"
    lines = {
        "Model": f"{info.format}{step}, read from {listed(map(str, info.files), 1)}",
        "Gaussians": f"{info.count:,}, harmonics of degree {info.sh_degree}",
        "Size": f"{size / 1e6:,.1f} MB" if size >= SMALL else f"{size / 1e3:,.1f} kB",
        "Mode": "antialiased" if info.antialiased else "classic, not antialiased",
        "Frame": FRAMES[info.frame] + (", but --data CAPTURE recovers it" if can_rebuild else ""),
        "Held out": info.held_out or "not stored",
        "Background": _colour(info.background),
        "Columns": f"also {', '.join(info.extra)}" if info.extra else "",
        "Note": "; ".join(info.notes),
        **_run_lines(info.path),
    }
    if placed is not None:
        lines["Frame"] = placed.words()
    return _nonempty(lines)


def _run_lines(path: Path) -> dict[str, str]:
    """What the run folder of `splatcert train` adds to its model."""
    from splatcert.splats.account import account_of

    training = account_of(path)
    if training.seen is None or training.kept_out is None:
        return {}
    seen, kept_out = training.seen, training.kept_out
    held_out = f"{plural(len(kept_out), 'photo')}, {listed(kept_out)}" if kept_out else "none"
    return {
        "Trained": f"by splatcert train on {plural(len(seen), 'photo')}, long side "
        f"{training.long_side}",
        "Frame": "the capture's own",
        "Held out": held_out,
        "Background": _colour(training.background),
        "Note": "",
        "Next": "splatcert certify DATA MODEL -o CERT" if kept_out else "",
    }


def certificate_lines(certificate: Certificate, path: Path) -> dict[str, str]:
    """What a certificate covers, what it guarantees, and where its model is."""
    from splatcert.certificate.store import folder_of, remembered

    record = certificate.record
    place = remembered(folder_of(path), "model")
    lines = {
        "Scene": f"{record.scene.name}, certified {record.created} by splatcert {record.splatcert}",
        "Model": f"{record.model.gaussians:,} Gaussians, hash {record.model.splats[:12]}",
        "Model file": "moved or unknown: pass --model MODEL to commands that render"
        if place is None
        else str(place),
        "Renderer": f"{record.renderer.name} {record.renderer.version}, at "
        f"{counted(record.scene.sizes, 'pixels')}",
        "Views": f"{len(record.training)} training, {len(record.calibration)} calibration, "
        f"{len(record.unlabelled)} held out but not calibrating",
        **detail_lines(certificate),
        "Seal": "intact; splatcert verify checks the rest",
        **closing_lines(certificate, path),
    }
    if place is not None:
        lines["Next"] = (
            f"splatcert render {path} -o DIR; splatcert suggest {path}; "
            f"splatcert export {path} -o DIR"
        )
    return lines


def show_predictor(predictor: ViewPredictor) -> None:
    """Print the scenes a predictor was trained on, and how well it did on each when left out.

    In a file from elsewhere, anything on the card may be missing or wrong.
    """
    try:
        rows, facts = _card_rows(predictor.card), _card_facts(predictor.card)
    except UNREADABLE:
        say("Card", "unreadable, so its training scenes are unknown")
    else:
        show_table(CARD_HEADINGS, rows, numbers=CARD_HEADINGS[1:])
        say_all(facts)
    say(
        "Chosen",
        f"ridge {predictor.ridge:g}, lambda_a {predictor.lambda_a}, lambda_b "
        f"{predictor.lambda_b}, for beta = {predictor.beta}",
    )
    say("SHA-256", predictor.sha256)


def _card_rows(card: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows = [_card_row(row) for row in card["scenes"]]
    if len(rows) > 1:
        mean = {"scene": "mean", "spearman": card["mean_spearman"], "saving": card["mean_saving"]}
        rows.append(_card_row(mean))
    return rows


def _card_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    savings = (f"{100 * row['saving'][name]:.1f}%" for name in ("full", "a", "b", "oracle"))
    return str(row["scene"]), str(row.get("views", "")), f"{row['spearman']:.2f}", *savings


def _card_facts(card: Mapping[str, Any]) -> dict[str, str]:
    facts = {
        "Savings": "width saved against a constant scale; left out in training: "
        f"{card['left_out']}",
        "Trained on": f"{card['views']} views",
    }
    if dropped := sum(int(row["dropped"]) for row in card["scenes"]):
        facts["Dropped"] = (
            f"{plural(dropped, 'view')} without a target: no photo, every pixel masked, or no error"
        )
    return facts


def counted(counts: Mapping[str, int], unit: str) -> str:
    """Kinds with the number of views of each; the number is left out if there is one kind."""
    if len(counts) == 1:
        return f"{next(iter(counts))} {unit}".strip()
    shown = [f"{kind} {unit}".strip() + f" ({n})" for kind, n in counts.items()]
    return listed(shown, MOST_KINDS)


def _colour(colour: tuple[float, float, float] | None) -> str:
    return "" if colour is None else "red {:g}, green {:g}, blue {:g}".format(*colour)


def _nonempty(lines: dict[str, str]) -> dict[str, str]:
    return {label: text for label, text in lines.items() if text}
