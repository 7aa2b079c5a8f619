# SPDX-License-Identifier: Apache-2.0
"""An interactive page: pictures, boxes and view difficulty while the camera moves."""
