# SPDX-License-Identifier: Apache-2.0
"""View difficulty: one-pass query, descriptor, predictor."""
