//! What the server really asked the kernel for, as `strace` saw it: a witness that does not believe our own
//! code.
//!
//! From the transcript come the bytes that were written to the database's log and its syncs, and the HTTP/2
//! frames of every connection. [`testify`] then holds each answer against the sync of the commit that it
//! tells of.
//!
//! An order in the transcript is an order in time: a call's first line is written before the kernel begins
//! it, its last one after the kernel has ended it.

mod answers;
mod http2;
mod marks;
mod system_calls;

use std::collections::HashMap;

use uuid::Uuid;

pub use answers::{Answer, Kind, answers};
pub use marks::marks;
pub use system_calls::{SystemCall, read};

/// The arguments of `strace` before the program and its own. With `-D` the tracer is nobody's parent: the
/// process that is started is the program, and can be killed as ever.
pub fn arguments(transcript: &str) -> Vec<String> {
    let calls =
        "trace=read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg,pwrite64,pwritev,fsync,fdatasync";
    let all = ["-D", "-f", "--seccomp-bpf", "-y", "-xx", "-s", "1048576", "-e", calls, "-o", transcript];
    all.map(ToOwned::to_owned).to_vec()
}

/// An answer and the sync that made true what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synced {
    pub kind: Kind,
    /// Where the sync ended in the transcript: answers of one commit share it.
    pub sync: usize,
}

/// The sync behind each answer, or the first answer that left before its own.
///
/// Everything that an answer tells of carries marks. The first write of a mark to the log belongs to its
/// commit, the next sync of the log by the same thread ends that commit, and only then may an answer begin to
/// leave.
pub fn testify(calls: &[SystemCall], answers: &[Answer]) -> Result<Vec<Synced>, String> {
    let log: Vec<&SystemCall> = calls.iter().filter(|call| call.file.ends_with("-wal")).collect();
    let mut written: HashMap<Uuid, usize> = HashMap::new();
    for (at, call) in log.iter().enumerate().filter(|(_, call)| call.writes()) {
        for mark in marks(&call.data) {
            written.entry(mark).or_insert(at);
        }
    }
    let mut all = Vec::new();
    for answer in answers {
        for mark in &answer.marks {
            let what = format!("{:?} of {mark}, line {} of the transcript", answer.kind, answer.began);
            let write = *written.get(mark).ok_or(format!("{what}: it was never written"))?;
            let (thread, ended) = (log[write].thread, log[write].ended);
            let sync = log[write..]
                .iter()
                .find(|call| call.syncs() && call.thread == thread && call.began > ended)
                .ok_or(format!("{what}: written at line {ended} and never synced"))?;
            if sync.ended > answer.began {
                return Err(format!("{what}: written at line {ended}, synced only at line {}", sync.ended));
            }
            all.push(Synced { kind: answer.kind, sync: sync.ended });
        }
    }
    Ok(all)
}
