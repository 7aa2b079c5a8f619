# SPDX-License-Identifier: Apache-2.0
"""Option values that nobody should give: rules that would be code, sizes without end."""

from __future__ import annotations

import shlex

RULES = {
    "import": "__import__('os').system('touch pwned')",
    "call": "open('pwned', 'w')",
    "call-compared": "open('pwned', 'w') > 0",
    "attribute": "opacity.__class__.__mro__[1].__subclasses__() == 1",
    "format": 'f\'{__import__("os").system("touch pwned")}\' == 1',
    "lambda": "(lambda: open('pwned', 'w'))() > 0",
    "comprehension": "[open('pwned', 'w') for x in (1,)] == 1",
    "walrus": "(opacity := 1) > 0",
    "power": "9**9**9**9 > opacity",
    "shift": "1 << 99999999 > opacity",
    "digits": "9" * 490 + " > opacity",
    "very-many-digits": "9" * 5000 + " > opacity",
    "huge": "1e999 > opacity",
    "nan": "opacity / 0 * 0 > 1",
    "deep": "(" * 240 + "1" + ")" * 240 + " > 0",
    "nots": "not " * 100 + "opacity > 2",
    "minus": "-" * 400 + "1 > 0",
    "statement": "import os",
    "lines": "opacity > 0\nimport os",
    "null": "opacity > '\\0'",
    "unknown": "opaque > 0",
    "nothing": "opacity > 2",
    "complex": "1j > opacity",
    "await": "await opacity > 0",
    "starred": "*opacity > 0",
    "bytes": "b'x' * 999999999 == opacity",
}
CERTIFIED = {
    "cameras-nowhere": "render {it} --cameras nowhere.json",
    "cameras-device": "render {it} --cameras /dev/zero",
    "cameras-folder": "render {it} --cameras {it}",
    "cameras-misspelt": "render {it} --cameras orbits",
    "cameras-other-json": "render {it} --cameras {it}/certificate.json",
    "seconds-minus": "render {it} --cameras orbit --seconds -1",
    "seconds-nan": "render {it} --cameras orbit --seconds nan",
    "seconds-endless": "render {it} --cameras spline --seconds inf",
    "seconds-huge": "render {it} --cameras spline --seconds 1e300",
    "fps-none": "render {it} --cameras orbit --fps 0",
    "fps-huge": "render {it} --cameras orbit --fps 99999999999999999999",
    "resolution-none": "render {it} --resolution 0",
    "resolution-zeroth": "render {it} --resolution 1/0",
    "resolution-huge": "render {it} --resolution 99999999999999999999 --maps none --no-film",
    "resolution-power": "render {it} --resolution 1e999999999",
    "background": "render {it} --background 9 9 9",
    "backend": "render {it} --backend reference",
    "count-none": "suggest {it} --count 0",
    "count-huge": "suggest {it} --count 1000000000000",
    "threads-minus": "suggest {it} --threads -1",
    "threads-huge": "export {it} --threads 99999999999999999999",
    "threads-many": "export {it} --threads 1000000000",
}
TRAINING = "train {it} -o {out} --iterations 4 --random-points 40 --holdout 3"
CERTIFYING = "certify {it} {valid}/model.ply -o {out} --holdout 3 --predictor none"
OTHER = {
    "report-views": ("cert", "report {it} -o {out}/r.html --views 0"),
    "report-suggest": ("cert", "report {it} -o {out}/r.html --suggest 1000000"),
    "view-port": ("cert", "view {it} --port 70000"),
    "view-host": ("cert", "view {it} --host no.such.host.invalid --port 0"),
    "view-host-empty": ("cert", "view {it} --host '' --port -1"),
    "train-seed": ("transforms", f"{TRAINING} --seed -1"),
    "train-seed-huge": ("transforms", f"{TRAINING} --seed 99999999999999999999999"),
    "train-points": ("transforms", TRAINING.replace("40", "1000000000000")),
    "train-steps": ("transforms", TRAINING.replace("--iterations 4", "--iterations 0")),
    "train-holdout": ("transforms", TRAINING.replace("holdout 3", "holdout 99999999999999999999")),
    "train-holdout-one": ("transforms", TRAINING.replace("holdout 3", "holdout 1")),
    "train-holdout-random": ("transforms", TRAINING.replace("holdout 3", "holdout random999999")),
    "train-holdout-folder": ("transforms", TRAINING.replace("holdout 3", "holdout {it}")),
    "train-holdout-device": ("transforms", TRAINING.replace("holdout 3", "holdout /dev/zero")),
    "train-holdout-names": (
        "transforms",
        TRAINING.replace("holdout 3", "holdout ../x,/etc/passwd"),
    ),
    "train-holdout-commas": ("transforms", TRAINING.replace("holdout 3", "holdout " + "," * 9000)),
    "train-sparse": ("colmap_bin", f"{TRAINING} --sparse 7"),
    "train-sparse-minus": ("colmap_bin", f"{TRAINING} --sparse -1"),
    "train-sparse-none": ("transforms", f"{TRAINING} --sparse 0"),
    "train-resolution": ("transforms", f"{TRAINING} --resolution 1/99999999999"),
    "train-images": ("transforms", f"{TRAINING} --images ../../../../etc"),
    "certify-alpha": ("transforms", f"{CERTIFYING} --alpha 1e999"),
    "certify-alpha-none": ("transforms", f"{CERTIFYING} --alpha 0"),
    "certify-beta": ("transforms", f"{CERTIFYING} --beta 1/0"),
    "certify-beta-digits": ("transforms", f"{CERTIFYING} --beta 1/" + "9" * 5000),
    "results-page": ("results", "results {it} --page {out}/nowhere/page.md"),
    "bench-workers": ("bench.toml", "bench {it} -o {out} --workers 0"),
    "bench-data": ("bench.toml", "bench {it} -o {out} --data /dev/null/x --threads -1"),
}
OPTIONS: dict[str, tuple[str, str]] = {
    **{
        f"rule-{name}": (
            "cert",
            "export {it} -o {out} --model {valid}/model.ply --keep="
            + shlex.quote(rule.replace("{", "{{").replace("}", "}}")),
        )
        for name, rule in RULES.items()
    },
    **{
        name: ("cert", line + " -o {out} --model {valid}/model.ply")
        for name, line in CERTIFIED.items()
    },
    **OTHER,
}
"""Kind of valid input, and the command that meets it."""
