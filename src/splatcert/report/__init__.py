# SPDX-License-Identifier: Apache-2.0
"""One self-contained page about a certificate. NumPy, Pillow and Jinja2 only."""
