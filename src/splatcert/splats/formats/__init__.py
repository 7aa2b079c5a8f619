# SPDX-License-Identifier: Apache-2.0
"""Compressed splats and other formats that people ship, one module per format."""
