# SPDX-License-Identifier: Apache-2.0
"""Families: several models or scales with one promise, any of which may be chosen afterwards."""
