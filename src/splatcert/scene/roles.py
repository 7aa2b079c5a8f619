# SPDX-License-Identifier: Apache-2.0
"""Who may see labels, as types.

The guarantee (thm:validity) holds only if scales are fixed before any
calibration label is seen. So a view without labels cannot provide them: a
`QueryView` has no image at all, not an empty one, and code that needs pixels
asks for a view with a role. Held-out pixels are revealed by one method, which
records who asked, in which order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar, overload, runtime_checkable

from torch import Tensor

from splatcert.camera import Camera
from splatcert.certificate.content.record import LabelUse, Purpose
from splatcert.errors import InputError, be, listed


class LabelError(InputError):
    """Labels that do not exist or must not be revealed."""


@runtime_checkable
class PixelSource(Protocol):
    """Where a labelled view gets its pixels from."""

    @property
    def path(self) -> Path | None:
        """The photograph's file; None for a picture that was never one."""
        ...

    @property
    def has_mask(self) -> bool:
        """Whether some pixels may not count."""
        ...

    def image(self) -> Tensor:
        """[H, W, 3], float32, sRGB in [0, 1]."""
        ...

    def mask(self) -> Tensor:
        """[H, W], bool, True where a pixel counts."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class QueryView:
    """A camera to predict for. It has no pixels, and none can be put on it."""

    name: str
    camera: Camera


@dataclass(frozen=True, slots=True, eq=False)
class LabelledView:
    """A camera with its photo. Only subclasses, which name its role, can be instantiated."""

    name: str
    camera: Camera
    source: PixelSource

    def __post_init__(self) -> None:
        if type(self) is LabelledView:
            raise TypeError(
                "a labelled view must have a role: create a TrainingView or another subclass"
            )

    @property
    def has_mask(self) -> bool:
        """Whether `mask` may be False anywhere."""
        return self.source.has_mask

    def image(self) -> Tensor:
        """The photo, [H, W, 3], float32, sRGB in [0, 1]; decoded when first asked for."""
        return self.source.image()

    def mask(self) -> Tensor:
        """Pixels that count, [H, W], bool."""
        return self.source.mask()

    def query(self) -> QueryView:
        """This view without its labels."""
        return QueryView(self.name, self.camera)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingView(LabelledView):
    """Labels that splats, residual field and support are fitted to."""


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationView(LabelledView):
    """Held-out labels that set the threshold, once, after all scales are fixed."""


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationView(LabelledView):
    """Held-out labels that only measure what has been certified."""


@dataclass(frozen=True, slots=True, eq=False)
class SourceView(LabelledView):
    """Held-out labels of a source scene, which the frozen view predictor learns from."""


Role = TypeVar("Role", bound=LabelledView)


@overload
def require_labels(view: Role) -> Role: ...
@overload
def require_labels(view: LabelledView, *roles: type[Role]) -> Role: ...
def require_labels(view: LabelledView, *roles: type[LabelledView]) -> LabelledView:
    """The view itself, if it has labels and one of these roles; TypeError otherwise.

    The type checker enforces the same; this is for code that is not type-checked.
    """
    wanted = roles or (LabelledView,)
    if not isinstance(view, wanted):
        names = " or ".join(role.__name__ for role in wanted)
        raise TypeError(
            f"labels of a {names} are required here, got {type(view).__name__}; "
            "a view with a different role must not be used for this step"
        )
    return view


class LabelLedger:
    """Uses of held-out labels, in order; entries can be added, never changed.

    It knows those of this process, and earlier ones that the model's run folder records.
    It cannot know what other programs or people have looked at.

    It holds no clock time, so that the same run writes the same certificate.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[LabelUse] = []

    def record(self, purpose: Purpose, by: str, views: Sequence[str]) -> LabelUse:
        """Add one hand-over."""
        entry = LabelUse(order=len(self._entries), purpose=purpose, by=by, views=tuple(views))
        self._entries.append(entry)
        return entry

    @property
    def entries(self) -> tuple[LabelUse, ...]:
        """All uses so far."""
        return tuple(self._entries)

    def views_seen(self, *purposes: Purpose) -> frozenset[str]:
        """Views whose labels were revealed, for any purpose or for these."""
        chosen = [e for e in self._entries if not purposes or e.purpose in purposes]
        return frozenset(name for entry in chosen for name in entry.views)


ROLE_OF: dict[Purpose, type[LabelledView]] = {
    "calibration": CalibrationView,
    "evaluation": EvaluationView,
    "source": SourceView,
}


class HeldOut(Sequence[QueryView]):
    """Held-out views: a sequence of query views, and labels only through `reveal`."""

    __slots__ = ("__sources", "_by_name", "_queries", "ledger")

    def __init__(
        self,
        queries: Sequence[QueryView],
        sources: Mapping[str, PixelSource],
        ledger: LabelLedger | None = None,
    ) -> None:
        self._queries = tuple(queries)
        self._by_name = {query.name: query for query in self._queries}
        self.__sources = dict(sources)
        self.ledger = LabelLedger() if ledger is None else ledger

    def __len__(self) -> int:
        return len(self._queries)

    def __iter__(self) -> Iterator[QueryView]:
        return iter(self._queries)

    @overload
    def __getitem__(self, index: int | str) -> QueryView: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[QueryView, ...]: ...
    def __getitem__(self, index: int | str | slice) -> QueryView | tuple[QueryView, ...]:
        """By position or by name."""
        return self._by_name[index] if isinstance(index, str) else self._queries[index]

    @property
    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(query.name for query in self._queries)

    @property
    def cameras(self) -> tuple[Camera, ...]:
        """Cameras in order."""
        return tuple(query.camera for query in self._queries)

    @property
    def with_photo(self) -> tuple[str, ...]:
        """Names of the views whose photo exists; this reveals no label."""
        return tuple(name for name in self.names if name in self.__sources)

    @overload
    def reveal(
        self, purpose: Literal["calibration"], names: Sequence[str] | None = None, *, by: str
    ) -> tuple[CalibrationView, ...]: ...
    @overload
    def reveal(
        self, purpose: Literal["evaluation"], names: Sequence[str] | None = None, *, by: str
    ) -> tuple[EvaluationView, ...]: ...
    @overload
    def reveal(
        self, purpose: Literal["source"], names: Sequence[str] | None = None, *, by: str
    ) -> tuple[SourceView, ...]: ...
    def reveal(
        self, purpose: Purpose, names: Sequence[str] | None = None, *, by: str
    ) -> tuple[LabelledView, ...]:
        """Reveal the labels of some or all held-out views, and record it.

        The entry is made when labels are revealed, not when pixels are first
        read: from then on nobody can tell whether they were.
        """
        if purpose not in ROLE_OF:
            raise LabelError(f"unknown purpose {purpose!r}; choose one of {', '.join(ROLE_OF)}")
        chosen = self.names if names is None else tuple(names)
        if unknown := [name for name in chosen if name not in self._by_name]:
            raise LabelError(
                f"{len(unknown)} views are not held out: {listed(unknown)}.\n"
                f"  The {len(self)} held-out views are {listed(self.names)}."
            )
        if missing := [name for name in chosen if name not in self.__sources]:
            raise LabelError(
                f"{len(missing)} of {len(chosen)} held-out photos {be(len(missing))} missing: "
                f"{listed(missing)}.\n"
                "  Restore them, or ask only for the views of `with_photo`."
            )
        role = ROLE_OF[purpose]
        self.ledger.record(purpose, by, chosen)
        return tuple(
            role(name, self._by_name[name].camera, self.__sources[name]) for name in chosen
        )
