# SPDX-License-Identifier: Apache-2.0
"""Difficulty of a view: descriptor, predictor, and how a predictor is learned. NumPy only."""
