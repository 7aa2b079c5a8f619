# SPDX-License-Identifier: Apache-2.0
"""Many scenes as one bench: train, certify, learn on the others, and tell what was saved."""

import json
from pathlib import Path

from splatcert_bench.run.bench import run_bench
from splatcert_bench.run.layout import Bench
from splatcert_bench.run.profiles import read_config

# A bench is one file: a profile, and a list of scenes. Here three are made, each the same on
# every machine; with captures of your own, `path = "captures/hall"` stands for `made = 1`.
SCENES = "".join(
    f'[[scene]]\nname = "{name}"\nfamily = "courtyards"\nmade = {seed}\n\n'
    for seed, name in enumerate(["north", "south", "west"], start=1)
)
SMALLER = """
[made]
views = 60

[members]   # no ensemble: it would be trained several times a scene
count = 0
folds = 0

[learn]
views = "held-out"

[study]
methods = ["gsu"]
"""
file, out = Path("many.toml"), Path("many")
file.write_text('profile = "smoke"\n\n' + SCENES + SMALLER)


def tell(state, outcome):
    """Called whenever a job ends, or others begin."""
    if outcome is not None and outcome.job.name.endswith(("/certify", "evaluate")):
        print(f"{outcome.job.name:<16}{state.done:>2} of {state.total} jobs done")


# Jobs wait for what they read. One worker uses all cores for one job; workers=4 are as many
# processes, ray_address="auto" is a cluster. Tables have the same bytes either way.
bench = Bench(read_config(file), out=out, data=Path(), file=file)
state = run_bench(bench, workers=1, tell=tell)
assert not state.failed, state.failed

# A second run does what is left: nothing. Killed, or with another scene in the file, the rest.
again = run_bench(bench, tell=tell)
print(f"again           {again.done} of {again.total} jobs were done already")

# All tables are in one file as numbers, and in `many/tables` as Markdown and LaTeX. Two
# tiny source scenes teach a predictor little, and the table does not hide it.
results = json.loads((out / "results.json").read_bytes())
table = next(one for one in results["tables"] if one["name"] == "per-scene-main")
print("width saved     at the same guarantee, against a constant scale")
for row in table["rows"]:
    residual_field, ours, oracle = (cell["ours"][0] for cell in row["cells"][:3])
    print(
        f"{row['label']:<16}{residual_field:.1f}% by the residual field alone, {ours:.1f}% with "
        f"the learned view factor, {oracle:.1f}% if it were known"
    )
