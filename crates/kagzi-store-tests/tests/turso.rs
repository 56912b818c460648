//! The Turso store keeps every claim, over a file of its own per test.

mod turso_file;

use turso_file::TursoFile;

kagzi_store_tests::conformance!(TursoFile::fresh());
kagzi_store_tests::durability!(TursoFile::fresh());
