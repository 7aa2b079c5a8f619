# SPDX-License-Identifier: Apache-2.0
"""Other methods' uncertainty maps, rendered by our renderer: one small class each.

A baseline is made from what training views gave and has one method: a camera in, a positive
map out. It never sees a held-out photo. View-CP calibrates any of them.
"""
