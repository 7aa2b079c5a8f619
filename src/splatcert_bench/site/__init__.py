# SPDX-License-Identifier: Apache-2.0
"""The results page, its charts and its figures."""
