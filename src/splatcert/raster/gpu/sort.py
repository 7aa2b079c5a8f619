# SPDX-License-Identifier: Apache-2.0
"""Running sums and a stable radix sort on the device."""

from __future__ import annotations

from splatcert.raster.gpu.device import Buffer, Device

SCANNED, COUNTED = 2048, 4096
"""Numbers per workgroup of a scan, entries per workgroup of a sort: the kernels' own."""


def scan(device: Device, numbers: Buffer) -> None:
    """Replace each number by the sum of all before it; a sum beyond 32 bits stays the largest."""
    blocks = -(-numbers.words // SCANNED)
    sums = device.empty(blocks)
    if blocks > 1:
        device.run("scan_sums", blocks, numbers, sums)
        scan(device, sums)
    device.run("scan_spread", blocks, numbers, sums)


def sorted_order(
    device: Device, keys: Buffer, count: int, digits: list[tuple[int, int]], words: int = 1
) -> Buffer:
    """Numbers 0 to count - 1 in the order of their keys, ties by number.

    A key has `words` words, and each digit is eight bits of one: (word, shift), least first.
    Only the numbers move; keys are read where they are.
    """
    order, spare = device.empty(count), device.empty(count)
    device.run_over("identity", count, order)
    blocks = -(-count // COUNTED)
    for word, shift in digits:
        place = {"words": words, "word": word, "shift": shift}
        starts = device.empty(256 * blocks)
        device.run("radix_count", blocks, keys, order, starts, **place)
        scan(device, starts)
        device.run("radix_move", blocks, keys, order, starts, spare, **place)
        order, spare = spare, order
    return order
