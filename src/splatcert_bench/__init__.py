# SPDX-License-Identifier: Apache-2.0
"""The paper's evaluation: studies, baselines, tables and figures.

It imports splatcert, which never imports it.
"""
