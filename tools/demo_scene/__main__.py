# SPDX-License-Identifier: Apache-2.0
"""Make photographs of our own by path tracing: those of `splatcert demo`, and two harder sets.

    python tools/demo_scene render build/still-life             # about an hour of one core
    python tools/demo_scene pack build/still-life src/splatcert/demo_data
    python tools/demo_scene render build/showcase --plan showcase
    python tools/demo_scene pack build/showcase captures/showcase --plan showcase

Needs Mitsuba 3 (`pip install mitsuba`), which nothing else here does. Rendering goes on
where it was stopped; several processes may share it by `--views`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cameras import poses
from plans import PLANS


def main() -> None:
    """Render or pack, as asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    tracing = verbs.add_parser("render", help="path-trace views into FOLDER")
    tracing.add_argument("folder", type=Path)
    tracing.add_argument("--views", type=int, nargs="+", help="default: all of the plan")
    packing = verbs.add_parser("pack", help="develop them into the capture the package holds")
    packing.add_argument("folder", type=Path)
    packing.add_argument("capture", type=Path)
    for verb in (tracing, packing):
        verb.add_argument("--plan", choices=PLANS, default="still-life")
    asked = parser.parse_args()
    plan = PLANS[asked.plan]
    if asked.verb == "render":
        from render import render

        render(plan, asked.folder, asked.views or range(len(poses(plan))))
    else:
        from pack import pack

        pack(plan, asked.folder, asked.capture)


if __name__ == "__main__":
    main()
