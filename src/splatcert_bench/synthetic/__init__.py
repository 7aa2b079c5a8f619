# SPDX-License-Identifier: Apache-2.0
"""Synthetic scenes and captures of them."""
