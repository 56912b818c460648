//! Maps for the lane's own bookkeeping. Their keys are ids, and a turn asks for them dozens of times per
//! command: the standard library's hash was 6 % of the writer's instructions.

use foldhash::fast::RandomState;

pub type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
pub type HashSet<K> = std::collections::HashSet<K, RandomState>;
