# SPDX-License-Identifier: Apache-2.0
"""The certificate: what it holds, how it is stored, predicted with and verified."""
