//! What reaches a server from strangers: browsers, silent connections, floods and half requests. Every test
//! talks to a real server over TCP.

mod browsers;
mod callers;
mod connections;
mod conversations;
mod errors;
mod limits;
mod lists;
mod many_watches;
mod messages;
mod namespaces;
mod quotas;
mod rpc_metrics;
mod seeds;
mod stage;
mod starts;
mod traces;
mod watches;
mod wording;
