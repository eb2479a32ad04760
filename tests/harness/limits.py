"""Limits for trials that load a server from one address: no rate or budget is reached."""

from __future__ import annotations

from typing import Any

NO_RATES: dict[str, Any] = {
    "rate": 1e6,
    "burst": 1e6,
    "address_rate": 1e9,
    "address_burst": 1e9,
    "address_bytes": 1e12,
    "address_bytes_burst": 1e12,
    "address_cpu": 1e9,
    "address_cpu_burst": 1e9,
    "tables_per_hour": 1e9,
    "house_tables_per_hour": 1e9,
    "key_rate": 1e9,
    "key_burst": 1e9,
    "key_bytes": 1e12,
    "key_bytes_burst": 1e12,
    "key_cpu": 1e9,
    "key_cpu_burst": 1e9,
}

NO_RATES_OPTIONS = tuple(f"{name}={value}" for name, value in NO_RATES.items())
"""The same as values of `--limit`."""
