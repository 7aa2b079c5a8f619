# SPDX-License-Identifier: Apache-2.0
"""The certificate: its content, and how it is stored and used to predict."""
