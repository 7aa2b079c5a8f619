# SPDX-License-Identifier: Apache-2.0
"""Rendered frames on disk: certified or plain, single or as a film."""
