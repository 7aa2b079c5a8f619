# SPDX-License-Identifier: Apache-2.0
"""Witnesses: what training photographs say about the pixels of a new view."""
