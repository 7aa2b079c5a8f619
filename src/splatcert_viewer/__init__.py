# SPDX-License-Identifier: Apache-2.0
"""The interactive viewer: render, boxes and view difficulty while the camera moves.

It imports splatcert and is never imported by it; viser is needed here alone.
"""
