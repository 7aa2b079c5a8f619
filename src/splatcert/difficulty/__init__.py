# SPDX-License-Identifier: Apache-2.0
"""How hard a view is: descriptor, predictor, and how one is learned. NumPy only."""
