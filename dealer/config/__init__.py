"""Settings of the server, each declared once in `dealer.config.settings`.

The options of `dealer serve`, the lines of `dealer config` and the table in REFERENCE.md derive
from these declarations. A flag takes precedence over an environment variable.
"""

from dealer.config.checks import (
    PASSWORD_FILE_VARIABLE,
    age_ms,
    masked,
    palette,
    read_logo,
    with_password,
)
from dealer.config.settings import (
    DATABASE,
    DATABASE_VARIABLE,
    LIMIT_VARIABLE,
    LIMITS,
    SETTINGS,
    Setting,
    Settings,
    read_limits,
)

__all__ = [
    "DATABASE",
    "DATABASE_VARIABLE",
    "LIMITS",
    "LIMIT_VARIABLE",
    "PASSWORD_FILE_VARIABLE",
    "SETTINGS",
    "Setting",
    "Settings",
    "age_ms",
    "masked",
    "palette",
    "read_limits",
    "read_logo",
    "with_password",
]
