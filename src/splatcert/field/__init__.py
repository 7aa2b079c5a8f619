# SPDX-License-Identifier: Apache-2.0
"""Residual field and observation support, fitted to training views."""
