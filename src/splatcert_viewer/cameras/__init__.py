# SPDX-License-Identifier: Apache-2.0
"""Cameras in the viewer: a browser's own, those of the capture, and those of a recorded path."""
