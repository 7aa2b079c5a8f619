# SPDX-License-Identifier: Apache-2.0
# Types of native/bindings.cpp and native/bindings_field.cpp. Arrays are C-contiguous float32 on
# the CPU unless noted, and results are written into the arrays that come last; the binding
# checks shapes. `survey` and `field_normal` add to their results; moments, squares,
# energy and the result of `field_normal` are float64, masks uint8, the histogram int64.

from numpy import float32, int64
from numpy.typing import NDArray
from torch import Tensor

def threads() -> int: ...
def set_threads(count: int, /) -> None: ...
def keep_to_this_thread(yes: bool, /) -> None: ...
def isa() -> str: ...
def available_isas() -> list[str]: ...
def set_isa(name: str, /) -> None: ...
def constants() -> dict[str, float]: ...
def empty(shape: list[int]) -> Tensor: ...
def loss(
    image: Tensor,
    target: Tensor,
    weight_l1: float,
    weight_ssim: float,
    mask: Tensor | None,
    valid_only: bool,
    grad: Tensor | None,
) -> tuple[float, float]: ...
def adam(
    parameter: Tensor,
    grad: Tensor,
    first: Tensor,
    second: Tensor,
    rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    step: int,
    rows: Tensor | None,
    columns: tuple[int, int],
    clear: bool,
) -> None: ...
def survey(
    view: PreparedView,
    means: Tensor,
    colours: Tensor,
    photo: Tensor,
    background: tuple[float, float, float],
    mask: Tensor | None,
    support: Tensor,
    moments: Tensor,
    blocks: Tensor,
    squares: Tensor,
    energy: Tensor,
    histogram: Tensor,
) -> None: ...
def field_normal(
    view: PreparedView, means: Tensor, coefficients: Tensor, mask: Tensor | None, result: Tensor
) -> None: ...
def field_values(
    view: PreparedView, means: Tensor, coefficients: Tensor, values: Tensor
) -> None: ...
def pack_query(
    view: PreparedView, means: Tensor, sh: Tensor, traits: Tensor, values: Tensor
) -> None: ...
def render_query(
    view: PreparedView,
    means: Tensor,
    sh: Tensor,
    traits: Tensor,
    background: tuple[float, float, float],
    field_floor: float,
    center: Tensor,
    field: Tensor,
    maps: Tensor,
    depth: Tensor,
) -> list[float]: ...
def render_picture(
    view: PreparedView,
    means: Tensor,
    sh: Tensor,
    background: tuple[float, float, float],
    rgb: Tensor,
    alpha: Tensor,
    depth: Tensor,
) -> None: ...
def summarise_maps(maps: Tensor) -> list[float]: ...
def shares_hardly_shown(
    maps: Tensor, alpha: float, exposure: float, angle: float
) -> list[float]: ...
def median(values: Tensor) -> float: ...
def widen(
    values: Tensor,
    opacity: Tensor,
    times: float,
    plus: float,
    prior: float,
    squared: bool,
    out: Tensor,
) -> float: ...
def shrink(
    values: Tensor, unit: float, kept: float, rest: float, times: float, out: Tensor
) -> None: ...
def ask_witnesses(
    depth: Tensor,
    picture: Tensor,
    lens: tuple[float, float, float, float],
    pixels: list[Tensor],
    geometry: NDArray[float32],
    maps: Tensor,
) -> None: ...
def guided_scale(
    depth: Tensor,
    picture: Tensor,
    lens: tuple[float, float, float, float],
    pixels: list[Tensor],
    geometry: NDArray[float32],
    field: Tensor,
    guide: list[float],
    scale: Tensor,
    correction: Tensor | None,
) -> tuple[float, int]: ...

class TooManyEntries(ValueError): ...  # noqa: N818 - named as in C++

class PreparedView:
    def __init__(
        self,
        means: Tensor,
        quats: Tensor,
        log_scales: Tensor,
        logit_opacities: Tensor,
        world_to_camera: NDArray,
        fx: float,
        fy: float,
        cx: float,
        cy: float,
        width: int,
        height: int,
        antialiased: bool,
        entry_limit: int,
        /,
    ) -> None: ...
    def composite(self, values: Tensor, image: Tensor, /) -> None: ...
    def scatter(self, image: Tensor, values: Tensor, /) -> None: ...
    def normal(self, values: Tensor, result: Tensor, /) -> None: ...
    def count(self, mask: Tensor, counts: Tensor, /) -> None: ...
    def footprint(self, sums: Tensor, /) -> None: ...
    def contributors(
        self, pixels: Tensor, /
    ) -> tuple[NDArray[int64], NDArray[int64], NDArray[float32]]: ...
    def backward(
        self,
        means: Tensor,
        quats: Tensor,
        log_scales: Tensor,
        logit_opacities: Tensor,
        values: Tensor,
        image: Tensor,
        grad_image: Tensor,
        grad_values: Tensor,
        grad_means: Tensor,
        grad_quats: Tensor,
        grad_log_scales: Tensor,
        grad_logit_opacities: Tensor,
        grad_means2d: Tensor,
        abs_grad_means2d: Tensor | None,
    ) -> None: ...
    def shade(self, means: Tensor, sh: Tensor, degree: int, colours: Tensor, /) -> None: ...
    def shade_backward(
        self,
        means: Tensor,
        sh: Tensor,
        degree: int,
        grad_colours: Tensor,
        accumulate: bool,
        grad_means: Tensor,
        grad_sh: Tensor,
        /,
    ) -> None: ...
    def depths(self, depths: Tensor, /) -> None: ...
    def tally(
        self,
        grad_means2d: Tensor,
        abs_grad_means2d: Tensor,
        gradient: Tensor,
        absolute: Tensor,
        seen: Tensor,
        radius: Tensor,
        /,
    ) -> None: ...
    def drawn(self) -> NDArray[int64]: ...
    @property
    def entries(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def pairs(self) -> tuple[int, int]: ...
