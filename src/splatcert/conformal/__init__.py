# SPDX-License-Identifier: Apache-2.0
"""The guarantee: exact ranks, view scores, thresholds. NumPy only."""
