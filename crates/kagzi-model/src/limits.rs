//! Every bound in one place.

/// Longest name of a namespace, queue, workflow type, business id or label, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Longest path of a step: scopes and name together.
pub const STEP_PATH_BYTES_MAX: usize = 1024;
/// Longest error message kept; the rest is cut.
pub const ERROR_BYTES_MAX: usize = 4096;
/// Longest error code.
pub const ERROR_CODE_BYTES_MAX: usize = 255;
/// Longest reason given by a person or a worker.
pub const REASON_BYTES_MAX: usize = 1024;
/// Most recorded steps of one run.
pub const STEPS_PER_RUN_MAX: usize = 100_000;
/// Most bytes of payloads in one history: input, results, progress and output together. A worker that is
/// given the run holds all of it, and so does the server that reads it.
pub const HISTORY_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Most workflow types of one worker.
pub const TYPES_PER_WORKER_MAX: usize = 1_000;
/// Most runs that one worker may hold at once.
pub const CONCURRENT_PER_WORKER_MAX: u32 = 10_000;
/// Most labels on a worker or a run.
pub const LABELS_MAX: usize = 64;
/// Ended runs are kept at least this long. A client repeats a start that was not answered for up to a minute;
/// were the run gone by then, the repeat would start it a second time.
pub const RETENTION_MS_MIN: i64 = 120_000;
/// Longest sleep, retry delay or timeout: ten years.
pub const WAIT_MS_MAX: i64 = 10 * 366 * 24 * 3600 * 1000;
/// Claims in a row that end with a lost worker and no progress before a run is quarantined, unless the server
/// is told otherwise.
pub const LOSSES_STANDARD: u32 = 3;
/// Claims in a row that end with the run given back and no progress before it is quarantined. With the delays
/// between them that takes about a minute.
pub const RELEASES_MAX: u32 = 10;
/// The second release in a row without progress waits this long, and each further one twice as long as the
/// last.
pub const RELEASE_DELAY_MS: i64 = 250;
/// A history of this many lines takes no more words of how far a step is: twenty-eight hours of one every
/// half second.
pub const PROGRESS_EVENTS_MAX: u64 = 200_000;
/// Most bytes of such words in one history, a quarter of all: they must not use up the room of results.
pub const PROGRESS_BYTES_MAX: u64 = HISTORY_BYTES_MAX / 4;
/// Words that come no more often than this are all kept, as long as they are few.
pub const PROGRESS_FREE_MS: i64 = 500;
/// Parks in a row that are due at once although nothing happened since the claim, before the next is put off.
pub const IDLE_PARKS_FREE: u32 = 2;
/// The same, before the run is paused.
pub const IDLE_PARKS_MAX: u32 = 12;
/// How long the first of them is put off; each further one twice as long.
pub const IDLE_PARK_MS: i64 = 1_000;
/// Requests of operators that a run remembers, to recognise a repeat.
pub const REQUESTS_KEPT: usize = 8;
/// Signals that a run may have and no wait has taken.
pub const UNREAD_MAX: usize = 1_000;
/// Ends of children that no wait has taken and that a run takes along when it continues in place.
pub const ENDS_KEPT: usize = 1_000;
/// Signals that one start may carry.
pub const START_SIGNALS_MAX: usize = 100;
/// Names of values that one run may publish.
pub const VALUES_MAX: usize = 100;
/// Largest published value, in bytes: every change of it is kept.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Shortest time between two signs of life that a promise may ask for.
pub const PROMISE_HEARTBEAT_MS_MIN: i64 = 1_000;
/// Longest name of a promise: with what stands before it, it must fit into a channel.
pub const PROMISE_NAME_BYTES_MAX: usize = 200;
/// Signals that were taken and that a run remembers when it continues in place, to recognise a repeat.
pub const TAKEN_KEPT: usize = 1_000;
/// Steps of one run that may run or wait at once.
pub const WAITS_OPEN_MAX: usize = 10_000;
/// Runs that one run may start.
pub const CHILDREN_MAX: usize = 10_000;
/// Runs above a run: parents of parents.
pub const LINEAGE_MAX: u32 = 100;
/// Children that are told to end in one turn because their parent has ended.
pub const CLOSED_PER_TURN: usize = 100;
/// Error codes in one list of a policy.
pub const POLICY_CODES_MAX: usize = 100;
/// Rules about failures in one list: a step's, a namespace's or the server's.
pub const HANDLING_RULES_MAX: usize = 200;
/// Longest message to a person in such a rule.
pub const HANDLING_MESSAGE_BYTES_MAX: usize = 1024;
/// Other ways that one step may have.
pub const ALTERNATIVES_MAX: usize = 20;
/// Codes that one of them may be for.
pub const ALTERNATIVE_CODES_MAX: usize = 100;
/// Other ways that are tried before the ladder goes on, in one episode.
pub const REPLANS_MAX: u8 = 3;
/// All of them within this time after the first.
pub const REPLAN_WINDOW_MS: i64 = 5 * 60_000;
/// How often a person may let a failed step climb again, the first time included.
pub const EPISODES_MAX: u8 = 3;
/// How long the result of a shared key is kept unless its claim says otherwise: seven days.
pub const KEY_TTL_MS: i64 = 7 * 86_400_000;
/// How long a program without a run may be silent and keep its claim, unless it says otherwise; and the
/// least.
pub const KEY_LOCK_MS: i64 = 5 * 60_000;
pub const KEY_LOCK_MS_MIN: i64 = 1_000;
/// Largest result of a shared key: its row is read with every claim.
pub const KEY_RESULT_BYTES_MAX: usize = 256 * 1024;
/// Delays in a custom backoff.
pub const SCHEDULE_LEN_MAX: usize = 100;
/// Largest limit on payloads that a server can be given: four times of it must fit into a message that the
/// SDK takes.
pub const PAYLOAD_LIMIT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest cron expression: three lists of all their values fit.
pub const CRON_BYTES_MAX: usize = 512;
/// Shortest interval of a schedule.
pub const INTERVAL_MS_MIN: i64 = 1_000;
/// Longest name of a schedule: with the nominal time it must fit into a business id.
pub const SCHEDULE_ID_BYTES_MAX: usize = 160;
/// Most missed times that a schedule makes up for.
pub const CATCHUP_MAX: u32 = 1_000;
/// Missed times that a schedule makes up for unless told otherwise.
pub const CATCHUP_STANDARD: u32 = 100;
/// Widest jitter of a schedule: an hour.
pub const JITTER_MS_MAX: i64 = 3_600_000;
/// Times that may wait for an earlier run; beyond it they count as overlapped.
pub const SCHEDULE_BUFFER_MAX: usize = 1_000;
/// Runs of one schedule whose end it watches.
pub const SCHEDULE_RUNNING_MAX: usize = 100;
/// Times in one backfill.
pub const BACKFILL_TIMES_MAX: u64 = 10_000;
/// Backfills of one schedule that are not done.
pub const BACKFILLS_MAX: usize = 10;
/// Runs that one schedule starts in one turn, so that its catch-up lets others through.
pub const SCHEDULE_SLICE: usize = 10;
/// Gates in one namespace.
pub const GATES_PER_NAMESPACE_MAX: usize = 1_000;
/// The highest limit of a gate.
pub const GATE_CONCURRENT_MAX: u32 = 1_000_000;
/// Longest description of a namespace.
pub const DESCRIPTION_BYTES_MAX: usize = 4096;
/// Nouns of one kind in one namespace, unless the kind says otherwise.
pub const NOUNS_MAX: usize = 1_000;
/// Triggers in one namespace: each is looked at for every event.
pub const TRIGGERS_MAX: usize = 200;
/// Longest key of an event, in bytes.
pub const EVENT_KEY_BYTES_MAX: usize = 255;
/// How long an event is kept unless its publisher says otherwise: a day.
pub const EVENT_KEEP_MS_STANDARD: i64 = 24 * 3600 * 1000;
/// Longest time for which an event is kept: ninety days.
pub const EVENT_KEEP_MS_MAX: i64 = 90 * 24 * 3600 * 1000;
/// Events that one namespace keeps at once, and their payloads in bytes. Counted from time to time, so that
/// several servers together may keep a few more.
pub const EVENTS_KEPT_MAX: u64 = 100_000;
pub const EVENTS_KEPT_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Largest question to a person, in bytes of JSON.
pub const ASK_BYTES_MAX: usize = 64 * 1024;
/// Longest title of a question.
pub const TITLE_BYTES_MAX: usize = 255;
/// Most options of a decision.
pub const OPTIONS_MAX: usize = 50;
/// Most people and groups that a question names.
pub const ASSIGNEES_MAX: usize = 50;
/// Most steps of an escalation.
pub const ESCALATIONS_MAX: usize = 10;
/// Shortest time between two reminders.
pub const REMIND_MS_MIN: i64 = 60_000;
/// Questions of one run that may be open at once.
pub const QUESTIONS_OPEN_MAX: usize = 100;
/// Comments that one question keeps.
pub const COMMENTS_MAX: usize = 100;
/// How long a claim of a question lasts unless it is renewed.
pub const CLAIM_MS: i64 = 5 * 60 * 1000;
/// Open questions that one person is asked by name; those beyond it wait.
pub const PENDING_PER_PERSON_MAX: usize = 10;
/// How long a question waits for an answer unless somebody says otherwise: a day.
pub const QUESTION_MS: i64 = 24 * 3600 * 1000;
