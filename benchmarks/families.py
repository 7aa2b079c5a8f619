# SPDX-License-Identifier: Apache-2.0
"""A family of one model at three sizes under two scales: widths, and what the choice costs.

splatcert demo -o DEMO
python benchmarks/families.py DEMO -o FAMILY

The two smaller models keep the Gaussians of the largest opacity.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

import splatcert as sc
from splatcert import cli
from splatcert.certificate.family import read_family
from splatcert.commands.certificates.family import family_facts

RESULTS = Path(__file__).parent / "results" / "families.json"
KEPT = {"full": 1.0, "kept-70": 0.7, "kept-40": 0.4}
"""Share of the Gaussians that each model keeps."""
SCALES = "paper,constant"


def prune(run: Path, folder: Path) -> list[str]:
    """Write the models; returns their paths."""
    splats = sc.load_splats(run)
    opacities = splats.logit_opacities.ravel()
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, share in KEPT.items():
        count = round(share * len(splats))
        keep = opacities.argsort(descending=True, stable=True)[:count].sort().values
        sc.save_ply(splats[keep], folder / f"{name}.ply")
        paths.append(str(folder / f"{name}.ply"))
    return paths


def main() -> None:
    """Prune, certify all six members together, and write their widths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("demo", type=Path, help="folder written by splatcert demo")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the family")
    asked = parser.parse_args()
    models = prune(asked.demo / "run", asked.output.with_name(f"{asked.output.name}-models"))
    photos = str(asked.demo / "still-life")
    options = ["--holdout", "5", "--scale", SCALES, "-o", str(asked.output)]
    if code := cli.main(["certify", photos, *models, *options]):
        sys.exit(code)
    found = family_facts(read_family(asked.output), asked.output)
    members = [{k: v for k, v in one.items() if k != "path"} for one in found["members"]]
    known = {key: found[key] for key in ("guarantee", "alpha", "beta", "views", "threshold")}
    content = {"machine": describe_machine(), "family": {**known, "members": members}}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
