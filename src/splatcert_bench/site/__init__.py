# SPDX-License-Identifier: Apache-2.0
"""The results page: figures, charts and the paper's own numbers."""
