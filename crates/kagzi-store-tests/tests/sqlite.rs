//! The SQLite store keeps every claim, over a file of its own per test.

mod sqlite_file;

use sqlite_file::SqliteFile;

kagzi_store_tests::conformance!(SqliteFile::fresh());
kagzi_store_tests::durability!(SqliteFile::fresh());
