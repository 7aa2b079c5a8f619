# SPDX-License-Identifier: Apache-2.0
"""Per-view numbers of one model under every compared scale."""
