# SPDX-License-Identifier: Apache-2.0
"""Where to photograph next: reachable poses, ranked by what a photo there would show."""
