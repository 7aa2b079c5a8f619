# SPDX-License-Identifier: Apache-2.0
"""Fitting splats to photographs."""
