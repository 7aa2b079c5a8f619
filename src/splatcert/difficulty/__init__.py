# SPDX-License-Identifier: Apache-2.0
"""Difficulty of a view: descriptor, predictor, and how one is learned. NumPy and SciPy only."""
