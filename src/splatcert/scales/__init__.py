# SPDX-License-Identifier: Apache-2.0
"""Scales: the widths of boxes before calibration. A scale maps a camera to a positive map."""
