use super::{Chunks, copied};
use rusqlite::{Connection, params};
use std::fs::File;
use std::path::Path;

/// Nobody else has the file open, and a crash costs nothing but the benchmark.
const SETTINGS: &str = "
PRAGMA synchronous = OFF;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -262144;
CREATE TEMP TABLE copy (id BLOB NOT NULL PRIMARY KEY) WITHOUT ROWID;";

const TABLES: &str = "
SELECT sqlite_schema.name
FROM sqlite_schema, pragma_table_info(sqlite_schema.name) AS info
WHERE sqlite_schema.type = 'table' AND info.name = 'run_id'";

const COLUMNS: &str = "
SELECT name
FROM pragma_table_info(?1)";

const INSERT_ID: &str = "
INSERT INTO temp.copy (id)
VALUES (?1)";

/// Every row about the prototype, for every id, in every table that knows runs.
pub fn copy(path: &Path, chunks: Chunks) -> anyhow::Result<()> {
    let mut database = Connection::open(path)?;
    database.execute_batch(SETTINGS)?;
    let prototype = chunks.prototype.simple().to_string();
    let mut inserts = Vec::new();
    for table in names(&database, TABLES, "")? {
        database.execute_batch(&format!(
            "CREATE TEMP TABLE prototype_{table} AS SELECT * FROM main.{table} WHERE run_id = x'{prototype}'"
        ))?;
        let columns = names(&database, COLUMNS, &table)?;
        let values: Vec<&str> = columns.iter().map(|column| copied(column)).collect();
        // CROSS JOIN: ids outside, so that rows are appended in the order of their key.
        inserts.push(format!(
            "INSERT INTO main.{table} ({}) SELECT {} FROM temp.copy CROSS JOIN temp.prototype_{table}",
            columns.join(", "),
            values.join(", ")
        ));
    }
    for ids in chunks {
        let transaction = database.transaction()?;
        transaction.execute("DELETE FROM temp.copy", [])?;
        for id in ids {
            transaction.prepare_cached(INSERT_ID)?.execute(params![id.as_bytes()])?;
        }
        for insert in &inserts {
            transaction.execute(insert, [])?;
        }
        transaction.commit()?;
    }
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    // To the disk, now: otherwise the first checkpoint that is measured waits for a gigabyte of ours.
    Ok(File::open(path)?.sync_all()?)
}

fn names(database: &Connection, sql: &str, of: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = database.prepare(sql)?;
    let values: &[&dyn rusqlite::ToSql] = if of.is_empty() { &[] } else { &[&of] };
    statement.query_map(values, |row| row.get(0))?.collect()
}
