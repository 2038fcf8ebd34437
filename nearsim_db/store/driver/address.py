"""Connection parameters of a database URL."""

import re
from urllib.parse import parse_qsl, unquote

from nearsim_db.errors import NearsimError

_LOCATION = re.compile(
    r"(?:(?P<user>[^:/?@]*)(?::(?P<password>[^@]*))?@)?"
    r"(?:\[(?P<address>[^]]*)\]|(?P<host>[^:/?]*))(?::(?P<port>\d*))?"
    r"(?:/(?P<dbname>[^?]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
_ENCODED = ("user", "password", "dbname")


def parse_url(url: str) -> dict[str, str]:
    """Return libpq's parameters of a PostgreSQL URL; those of its query win.

    A scheme such as `postgresql+psycopg` may name a Python driver, which is ignored. Several hosts, as in
    `host=a:5432&host=b`, are tried in turn. Raises NearsimError, without quoting a password, for another kind of URL.
    """
    scheme, found, location = url.partition("://")
    parts = _LOCATION.fullmatch(location)
    if not found or not re.fullmatch(r"[\w+]+", scheme) or parts is None:
        raise NearsimError(
            "NEARSIM_DATABASE_URL is not a database URL; expected something like postgresql://user@host/database"
        )
    backend = scheme.partition("+")[0]
    if backend not in ("postgresql", "postgres"):
        raise NearsimError(f"nearsim needs PostgreSQL; the URL names {backend}")
    named = parts.groupdict()
    query = parse_qsl(named.pop("query") or "")
    named["host"] = named.pop("address") or named["host"]
    given = {name: unquote(value) if name in _ENCODED else value for name, value in named.items() if value}
    return given | dict(query) | _several_hosts([value for name, value in query if name == "host"])


def _several_hosts(hosts: list[str]) -> dict[str, str]:
    """Return the hosts of a query as libpq's lists, with their ports where they name one."""
    if len(hosts) < 2 and not (hosts and re.fullmatch(r"[^:/]+:\d+", hosts[0])):
        return {}
    pairs = [one.rpartition(":") if re.fullmatch(r"[^:/]+:\d+", one) else (one, "", "") for one in hosts]
    ports = {"port": ",".join(port for _, _, port in pairs)} if any(port for _, _, port in pairs) else {}
    return {"host": ",".join(host for host, _, _ in pairs), **ports}
