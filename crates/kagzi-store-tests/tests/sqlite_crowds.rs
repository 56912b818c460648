//! The SQLite store with ten thousand runs at once.

mod sqlite_file;

use sqlite_file::SqliteFile;

kagzi_store_tests::crowds!(SqliteFile::fresh());
