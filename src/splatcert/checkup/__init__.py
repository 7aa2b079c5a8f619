# SPDX-License-Identifier: Apache-2.0
"""What this machine can run: every back end measured against the float64 reference."""
