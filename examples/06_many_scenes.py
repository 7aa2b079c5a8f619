# SPDX-License-Identifier: Apache-2.0
"""Many scenes as one bench: train, certify, learn on the others, and compare widths."""

import json
from pathlib import Path
from typing import Any

from splatcert_bench.run.bench import State, run_bench
from splatcert_bench.run.layout import Bench
from splatcert_bench.run.profiles import read_config

# A bench is one file: a profile and a list of scenes. These three are synthetic and the same on
# every machine; for your own captures, write `path = "captures/hall"` instead of `made = 1`.
SCENES = "".join(
    f'[[scene]]\nname = "{name}"\nfamily = "courtyards"\nmade = {seed}\n\n'
    for seed, name in enumerate(["north", "south", "west"], start=1)
)
SMALLER = """
[made]
views = 60

[members]   # no ensemble: it would train several models per scene
count = 0
folds = 0

[learn]
views = "held-out"

[study]
methods = ["gsu"]
ridges = []       # and no fields of other ridges, no guides
guided = false
"""
file, out = Path("many.toml"), Path("many")
file.write_text('profile = "smoke"\n\n' + SCENES + SMALLER)


def tell(state: State, outcome: object) -> None:
    """Called whenever jobs start or end; `outcome` is the job that ended, or None."""
    if outcome is not None and (state.done % 5 == 0 or state.done == state.total):
        print(f"done            {state.done} of {state.total} jobs")


# Jobs wait for their inputs. One worker uses all cores for one job; workers=4 starts four
# processes, ray_address="auto" uses a cluster. Tables have the same bytes either way.
bench = Bench(read_config(file), out=out, data=Path(), file=file)
state = run_bench(bench, workers=1, tell=tell)
assert not state.failed, state.failed

# A second run does only what is left: here nothing; after a kill or a new scene, the rest.
again = run_bench(bench, tell=tell)
print(f"again           {again.done} of {again.total} jobs were already done")

# All tables are in one file as numbers, and in `many/tables` as Markdown and LaTeX. A predictor
# learns little from two tiny source scenes, and the table shows it.
results: dict[str, Any] = json.loads((out / "results.json").read_bytes())
table = next(one for one in results["tables"] if one["name"] == "per-scene-main")
print("width saved     at the same guarantee, against a constant scale")
heads = [column["name"] for column in table["columns"]]
shown = [heads.index(h) for h in ("3DGS-U spatial field", "Ours, a × b̃", "Oracle factor a* × b̃")]
for row in table["rows"]:
    residual_field, ours, oracle = (row["cells"][at]["ours"][0] for at in shown)
    print(
        f"{row['label']:<16}{residual_field:.1f}% with the residual field alone, {ours:.1f}% with "
        f"the learned view factor, {oracle:.1f}% if it were known"
    )
