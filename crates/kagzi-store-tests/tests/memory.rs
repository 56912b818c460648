//! The reference store keeps every claim.

use kagzi_store_tests::MemoryFactory;

kagzi_store_tests::conformance!(MemoryFactory);
