# SPDX-License-Identifier: Apache-2.0
"""Readers of captures: COLMAP, transforms.json, Blender, and lists of cameras."""
