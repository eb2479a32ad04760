"""Settings of the server, each declared once in `dealer.config.settings`.

The options of `dealer serve`, the lines of `dealer config` and the table in REFERENCE.md derive
from these declarations. A flag takes precedence over an environment variable.
"""

from dealer.config.checks import age_ms
from dealer.config.colours import palette
from dealer.config.database_url import PASSWORD_FILE_VARIABLE, masked, with_password
from dealer.config.limits import LIMIT_VARIABLE, LIMITS, read_limits
from dealer.config.logo import read_logo
from dealer.config.settings import DATABASE, DATABASE_VARIABLE, SETTINGS, Setting, Settings

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
