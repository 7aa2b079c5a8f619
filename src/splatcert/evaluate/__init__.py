# SPDX-License-Identifier: Apache-2.0
"""Evidence from stored per-view arrays. NumPy and SciPy only."""
