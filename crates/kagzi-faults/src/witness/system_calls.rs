use std::collections::HashMap;

/// One call, from the line on which it began to the one on which it had ended.
#[derive(Debug, Clone)]
pub struct SystemCall {
    pub thread: u32,
    pub name: String,
    /// What the descriptor stands for: a path, or `socket:[NUMBER]`.
    pub file: String,
    /// What was really read or written.
    pub data: Vec<u8>,
    pub began: usize,
    pub ended: usize,
}

impl SystemCall {
    pub fn writes(&self) -> bool {
        ["write", "writev", "pwrite64", "pwritev", "sendto", "sendmsg"].contains(&self.name.as_str())
    }

    pub fn reads(&self) -> bool {
        ["read", "readv", "recvfrom", "recvmsg"].contains(&self.name.as_str())
    }

    pub fn syncs(&self) -> bool {
        ["fsync", "fdatasync"].contains(&self.name.as_str())
    }
}

/// The calls of a transcript that succeeded, in the order in which they began.
pub fn read(transcript: &str) -> Vec<SystemCall> {
    let mut calls = Vec::new();
    // Of each thread, a call that has begun: the line and its text so far.
    let mut unfinished: HashMap<u32, (usize, String)> = HashMap::new();
    for (line, text) in transcript.lines().enumerate() {
        let Some((thread, rest)) = text.split_once(' ') else { continue };
        let Ok(thread) = thread.parse() else { continue };
        let rest = rest.trim_start();
        if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
            unfinished.insert(thread, (line, begun.to_owned()));
            continue;
        }
        let (began, whole) = match rest.strip_prefix("<... ").and_then(|rest| rest.split_once("resumed>")) {
            Some((_, end)) => {
                let Some((began, begun)) = unfinished.remove(&thread) else { continue };
                (began, format!("{begun}{end}"))
            }
            None => (line, rest.to_owned()),
        };
        calls.extend(call(&whole).map(|call| SystemCall { thread, began, ended: line, ..call }));
    }
    calls.sort_by_key(|call| call.began);
    calls
}

/// `name(FD<file>, "data", …) = result`; none of one that failed, or is no call at all.
fn call(text: &str) -> Option<SystemCall> {
    let (name, rest) = text.split_once('(')?;
    let (_, rest) = rest.split_once('<')?;
    let (file, rest) = rest.split_once('>')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let result: usize = result.split_whitespace().next()?.parse().ok()?;
    // Every other piece between quotes is data; in hexadecimal it holds no quotes itself.
    let mut data: Vec<u8> = arguments.split('"').skip(1).step_by(2).flat_map(bytes).collect();
    data.truncate(result);
    let file = String::from_utf8_lossy(&bytes(file)).into_owned();
    Some(SystemCall { thread: 0, name: name.to_owned(), file, data, began: 0, ended: 0 })
}

/// `\x6b\x61` as bytes.
fn bytes(text: &str) -> Vec<u8> {
    text.split("\\x").skip(1).filter_map(|byte| u8::from_str_radix(byte, 16).ok()).collect()
}
