# SPDX-License-Identifier: Apache-2.0
"""Verification: whether a certificate is consistent, and whether it can be recomputed."""
