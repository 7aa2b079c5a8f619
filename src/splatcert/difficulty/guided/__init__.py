# SPDX-License-Identifier: Apache-2.0
"""Weights of the guided scale, and the view factor that follows from them."""
