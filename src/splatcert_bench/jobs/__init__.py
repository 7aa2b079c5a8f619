# SPDX-License-Identifier: Apache-2.0
"""The jobs of a bench: what each reads, what it writes and which settings determine it."""
