# SPDX-License-Identifier: Apache-2.0
"""Captures of made scenes."""
