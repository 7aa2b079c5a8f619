// SPDX-License-Identifier: Apache-2.0
// Whether Gaussian i of a page is drawn: its rank and the next one differ.
fn drawn(i: u32) -> bool {
    if (3u * i >= arrayLength(&geometry)) { return false; }
    return ranks[first[0] + i + 1u] != ranks[first[0] + i];
}
