//! The PostgreSQL store with ten thousand runs at once.

mod database;

use database::Database;

kagzi_store_tests::crowds!(Database::fresh().await);
