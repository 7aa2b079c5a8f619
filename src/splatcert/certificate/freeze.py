# SPDX-License-Identifier: Apache-2.0
"""The moment between phases 3 and 4: every scale is fixed and hashed, no label is read yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from splatcert.camera import CameraRecord, camera_hash
from splatcert.certificate.hashes import canonical, joint_hash, tensor_hash
from splatcert.certificate.measure import Description
from splatcert.certificate.record import QueryRecord, ScaleRecord
from splatcert.certificate.rule import ScaleRule
from splatcert.field.fitted_scene import Query
from splatcert.scene.roles import LabelLedger
from splatcert.storage.schema import to_plain


@dataclass(frozen=True, eq=False)
class FrozenScales:
    """The scales of a whole query batch, and the proof of when they were fixed."""

    rule: ScaleRule
    queries: dict[str, QueryRecord]
    """By view name, in order."""
    hash: str
    handed_out_before: int
    """Hand-overs of held-out labels up to this moment."""

    @classmethod
    def of(cls, rule: ScaleRule, batch: Sequence[Description], ledger: LabelLedger) -> FrozenScales:
        """Fix the scales of these views."""
        queries = {
            view.name: QueryRecord(
                name=view.name,
                camera=CameraRecord.of(view.camera),
                pose=camera_hash(view.camera),
                field=view.field,
                factor=rule.factor(view.descriptor),
            )
            for view in batch
        }
        digest = freeze_hash(rule.record(), tuple(queries.values()))
        return cls(rule, queries, digest, len(ledger.entries))

    def require(self, name: str, query: Query) -> Query:
        """The query itself, once it is known to be the one whose scale was fixed.

        Maps of a whole batch would not fit into memory, so a view is rendered again for its
        score. The renderer is deterministic; anything else is a fault of ours.
        """
        frozen = self.queries[name]
        found = tensor_hash(query.field), self.rule.factor(query.descriptor)
        if found != (frozen.field, frozen.factor):
            raise RuntimeError(f"view {name!r} has another scale than the one that was frozen")
        return query


def freeze_hash(scale: ScaleRecord, queries: Sequence[QueryRecord]) -> str:
    """One hash over the rule and every view's factor and shape."""
    names = [entry.name for entry in fields(QueryRecord)]
    rows = [{name: to_plain(getattr(query, name)) for name in names} for query in queries]
    return joint_hash([canonical(to_plain(scale)), *map(canonical, rows)])
