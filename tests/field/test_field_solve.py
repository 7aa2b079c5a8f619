# SPDX-License-Identifier: Apache-2.0
"""Conjugate gradients on matrices whose solution is known."""

import itertools

import pytest
import torch

from splatcert.field.solve import JITTER, BlockPreconditioner, Stopping, conjugate_gradients

EXACT = Stopping(tolerance=1e-12, progress=0.0, max_steps=4_000)


def problem(size=60, seed=0, condition=1e4):
    """A symmetric positive matrix, a right-hand side and the solution, as [N, 1] fields."""
    generator = torch.Generator().manual_seed(seed)
    turn, _ = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))
    H = (
        turn
        @ torch.diag(torch.logspace(0, torch.tensor(condition).log10(), size).double())
        @ turn.T
    )
    x = torch.randn(size, 1, generator=generator, dtype=torch.float64)
    return H, H @ x, x


def solve(H, rhs, stop, precondition=torch.clone, report=None):
    return conjugate_gradients(lambda x: H @ x, rhs, precondition, stop, start=1e9, report=report)


def test_the_solution_is_found_and_the_trace_tells_how():
    H, rhs, x = problem()
    found, trace = solve(H, rhs, EXACT)
    assert (found - x).norm() < 1e-8 * x.norm()
    assert trace.converged and trace.reason == "tolerance"
    assert trace.true_residual <= 1e-12
    assert trace.relative_residuals[0] == 1
    assert len(trace.relative_residuals) == len(trace.objective) == trace.steps + 1
    assert trace.sentence().startswith(f"converged after {trace.steps} steps")


def test_the_error_falls_in_the_norm_of_the_operator():
    H, rhs, x = problem()
    errors = []
    for steps in range(1, 25):
        found, trace = solve(H, rhs, Stopping(tolerance=1e-12, progress=0, max_steps=steps))
        apart = found - x
        errors.append(float((apart * (H @ apart)).sum()))
        start = float((x * (H @ x)).sum())
        assert 1e9 * (1 - trace.objective[-1]) == pytest.approx(start - errors[-1], rel=1e-6)
    assert all(a > b for a, b in itertools.pairwise(errors))


def test_an_inexact_operator_is_found_out():
    """The recurrence would claim any tolerance; the true residual does not allow it."""
    H, rhs, _ = problem()
    found, trace = conjugate_gradients(
        lambda x: (H.float() @ x.float()).double(), rhs, torch.clone, EXACT, start=1e9
    )
    assert trace.reason == "precision" and not trace.converged
    honest = float((rhs - H @ found).norm() / rhs.norm())
    assert trace.true_residual == pytest.approx(honest, rel=0.5)
    assert 1e-9 < trace.true_residual < 1e-4
    assert "not converged" in trace.sentence()


def test_a_long_run_is_checked_and_goes_on():
    H, rhs, x = problem(size=300, condition=1e6)
    found, trace = solve(H, rhs, Stopping(tolerance=1e-9, progress=0, max_steps=5_000))
    assert trace.converged and trace.steps > 200
    assert (found - x).norm() < 1e-3 * x.norm()


def test_nothing_to_fit_is_converged_at_once():
    found, trace = solve(torch.eye(3).double(), torch.zeros(3, 1).double(), EXACT)
    assert not found.any() and trace.converged and trace.steps == 0


def test_an_operator_that_is_not_positive_ends_the_fit():
    H = -torch.eye(3).double()
    _, trace = solve(H, torch.ones(3, 1).double(), EXACT)
    assert trace.reason == "precision" and not trace.converged and trace.steps == 0


def test_steps_are_reported_from_one():
    H, rhs, _ = problem()
    seen = []
    solve(H, rhs, Stopping(tolerance=1e-12, progress=0, max_steps=3), report=seen.append)
    assert seen == [1, 2, 3]


@pytest.mark.parametrize("size", [1, 4, 9, 16])
def test_blocks_are_inverted_with_the_ridge(size):
    generator = torch.Generator().manual_seed(size)
    half = torch.randn(50, size, 2 * size, generator=generator)
    full = (half @ half.mT).double()
    row, column = torch.tril_indices(size, size)
    apply = BlockPreconditioner(full[:, row, column].float(), 0.5)
    r = torch.randn(50, size, generator=generator).double()
    trace = full.diagonal(dim1=1, dim2=2).sum(1)[:, None, None]
    truth = torch.linalg.solve(full + (0.5 + JITTER * trace) * torch.eye(size), r)
    assert (apply(r) - truth).norm() < 1e-5 * truth.norm()


def test_blocks_seen_from_one_side_stay_positive():
    """Hundreds of rounded sums of one large rank-one block, and next to no ridge."""
    generator = torch.Generator().manual_seed(0)
    phi = torch.randn(200, 9, generator=generator)
    row, column = torch.tril_indices(9, 9)
    blocks = torch.zeros(200, 45)
    for weight in 1e5 * torch.rand(300, generator=generator):
        blocks += weight * phi[:, row] * phi[:, column]
    apply = BlockPreconditioner(blocks, 1e-3)
    for _ in range(5):
        r = torch.randn(200, 9, generator=generator).double()
        assert ((r * apply(r)).sum(1) > 0).all()
