//! The PostgreSQL store keeps every claim, over a database of its own per test.

mod database;

use database::Database;

kagzi_store_tests::conformance!(Database::fresh().await);
kagzi_store_tests::durability!(Database::fresh().await);
