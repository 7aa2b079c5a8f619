# SPDX-License-Identifier: Apache-2.0
"""Scales: how wide boxes are before calibration. One protocol; camera in, positive map out."""
