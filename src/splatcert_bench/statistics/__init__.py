# SPDX-License-Identifier: Apache-2.0
"""Statistics over splits and scenes."""
