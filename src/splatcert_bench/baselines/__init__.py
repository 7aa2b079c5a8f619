# SPDX-License-Identifier: Apache-2.0
"""Uncertainty maps of other methods, drawn by our renderer: one small class each.

A baseline is built from the training views and has one method, which maps a camera to a
positive map. It never sees a held-out photo. View-CP calibrates any of them.
"""
