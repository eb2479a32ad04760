"""A database of many tables: copies of the rows of the tables that it has, under other ids."""

from __future__ import annotations

from dealer.projector.declared import postgres


def copies(tables: int) -> list[str]:
    """Statements for PostgreSQL that copy every row of the longest table of the game so often.

    Nothing verifies the copies: they are there to be passed over. A tenth of them is archived.
    """
    id = "decode(lpad(to_hex(n), 32, '0'), 'hex')"
    made = [
        "CREATE TABLE copied AS SELECT stream, count(*) AS events FROM event GROUP BY stream"
        " ORDER BY events DESC LIMIT 1",
        f"CREATE TABLE copy AS SELECT n, {id} AS stream FROM generate_series(1, {tables}) AS g(n)",
    ]
    for table in postgres.sorted_tables:
        names = [column.name for column in table.columns if column.computed is None]
        key = "id" if table.name == "stream" else "stream"
        key = "of_stream" if "of_stream" in names else key
        if table.name == "service_table":
            made.append("INSERT INTO service_table SELECT stream, 1, 'ref ' || n FROM copy")
        if key not in names:
            continue
        changed = {key: "c.stream", "projected": "s.version", "seq": "s.seq * 1000000 + c.n"}
        if table.name == "tables":
            changed |= {"table_id": "c.n || s.table_id", "opened_at": "s.opened_at - c.n"}
        values = ", ".join(changed.get(name, f"s.{name}") for name in names)
        made.append(
            f"INSERT INTO {table.name} ({', '.join(names)}) SELECT {values}"
            f" FROM {table.name} s, copy c WHERE s.{key} = (SELECT stream FROM copied)"
        )
    made.append(
        "INSERT INTO archived SELECT c.stream, s.version, '', '', 'file', 1, '', 1, 1"
        f" FROM copy c JOIN stream s ON s.id = c.stream WHERE c.n <= {tables // 10}"
    )
    return [*made, "DROP TABLE copied", "DROP TABLE copy"]
