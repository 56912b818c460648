//! The columns of each table, said once for both dialects. From this come the list of a SELECT, the lists and
//! placeholders of an INSERT and an UPDATE, the casts of PostgreSQL's arrays, and how wide a row is.
//!
//! ```text
//! keys      name the row; never changed
//! changing  read, and written by every change
//! derived   written by every change, for indexes and filters; not read, since the model derives them again
//! fixed     read, and written once
//! noted     written once, for filters
//! rare      read, and written by a statement of its own: NULL for nearly every row
//! ```
//!
//! The numbers are those of the placeholders, in the order keys, changing, derived, fixed, noted. A change
//! binds the first three groups, an insertion all five, in this order; a reader reads keys, changing, fixed,
//! rare.
//! Each store has one binder and one reader per table, and the compiler compares the length of the binder.

/// Declares a table. The macro that it makes is written with what is wanted of it: `worker!(columns)`.
macro_rules! table {
    ($(#[$doc:meta])* $row:ident in $table:ident {
        keys { $kn:literal $k:ident $kt:ident $(, $kns:literal $ks:ident $kts:ident)* }
        changing { $cn:literal $c:ident $ct:ident $(, $cns:literal $cs:ident $cts:ident)* }
        derived { $($dn:literal $d:ident $dt:ident),* }
        fixed { $($fn:literal $f:ident $ft:ident),* }
        noted { $($nn:literal $n:ident $nt:ident),* }
        rare { $($r:ident),* }
    }) => {
        $(#[$doc])*
        #[macro_export]
        macro_rules! $row {
            // What a reader reads.
            (columns) => {
                concat!(stringify!($k) $(, ", ", stringify!($ks))*, ", ", stringify!($c)
                    $(, ", ", stringify!($cs))* $(, ", ", stringify!($f))* $(, ", ", stringify!($r))*)
            };
            // The same, each with the name of its table.
            (qualified) => {
                concat!(stringify!($table), ".", stringify!($k)
                    $(, ", ", stringify!($table), ".", stringify!($ks))*
                    , ", ", stringify!($table), ".", stringify!($c)
                    $(, ", ", stringify!($table), ".", stringify!($cs))*
                    $(, ", ", stringify!($table), ".", stringify!($f))*
                    $(, ", ", stringify!($table), ".", stringify!($r))*)
            };
            (width) => {
                [stringify!($k) $(, stringify!($ks))*, stringify!($c) $(, stringify!($cs))*
                    $(, stringify!($f))* $(, stringify!($r))*].len()
            };
            // What an insertion writes.
            (inserted) => {
                concat!(stringify!($k) $(, ", ", stringify!($ks))*, ", ", stringify!($c)
                    $(, ", ", stringify!($cs))* $(, ", ", stringify!($d))* $(, ", ", stringify!($f))*
                    $(, ", ", stringify!($n))*)
            };
            (values) => {
                concat!("?", stringify!($kn) $(, ", ?", stringify!($kns))*, ", ?", stringify!($cn)
                    $(, ", ?", stringify!($cns))* $(, ", ?", stringify!($dn))* $(, ", ?", stringify!($fn))*
                    $(, ", ?", stringify!($nn))*)
            };
            (arrays) => {
                concat!($row!(changed_arrays) $(, ", $", stringify!($fn), "::", stringify!($ft), "[]")*
                    $(, ", $", stringify!($nn), "::", stringify!($nt), "[]")*)
            };
            (inserted_width) => {
                $row!(changed_width) $(+ { let _ = stringify!($f); 1 })* $(+ { let _ = stringify!($n); 1 })*
            };
            // What a change writes.
            (changed) => {
                concat!(stringify!($k) $(, ", ", stringify!($ks))*, ", ", stringify!($c)
                    $(, ", ", stringify!($cs))* $(, ", ", stringify!($d))*)
            };
            (set) => {
                concat!(stringify!($c), " = ?", stringify!($cn)
                    $(, ", ", stringify!($cs), " = ?", stringify!($cns))*
                    $(, ", ", stringify!($d), " = ?", stringify!($dn))*)
            };
            (set_new) => {
                concat!(stringify!($c), " = new.", stringify!($c)
                    $(, ", ", stringify!($cs), " = new.", stringify!($cs))*
                    $(, ", ", stringify!($d), " = new.", stringify!($d))*)
            };
            (set_excluded) => {
                concat!(stringify!($c), " = excluded.", stringify!($c)
                    $(, ", ", stringify!($cs), " = excluded.", stringify!($cs))*
                    $(, ", ", stringify!($d), " = excluded.", stringify!($d))*)
            };
            (changed_arrays) => {
                concat!("$", stringify!($kn), "::", stringify!($kt), "[]"
                    $(, ", $", stringify!($kns), "::", stringify!($kts), "[]")*
                    , ", $", stringify!($cn), "::", stringify!($ct), "[]"
                    $(, ", $", stringify!($cns), "::", stringify!($cts), "[]")*
                    $(, ", $", stringify!($dn), "::", stringify!($dt), "[]")*)
            };
            (changed_width) => {
                [stringify!($k) $(, stringify!($ks))*, stringify!($c) $(, stringify!($cs))*
                    $(, stringify!($d))*].len()
            };
        }
    };
}

table! {
    /// One run. PostgreSQL has a column `reason` besides, derived from the state.
    run in runs {
        keys { 1 namespace_id text, 2 run_id uuid }
        changing {
            3 version bigint, 4 state text, 5 epoch bigint, 6 attempts integer, 7 dispatch_count integer,
            8 crashes integer, 9 started_at bigint, 10 finished_at bigint, 11 deadline_at bigint,
            12 labels text, 13 sweep_at bigint
        }
        derived {
            14 status smallint, 15 due_at bigint, 16 lease_worker uuid, 17 error_code text
        }
        fixed {
            18 business_id text, 19 workflow_type text, 20 task_queue text, 21 created_at bigint,
            22 options text
        }
        noted { 23 schedule_id text }
        rare { generation, first_seq }
    }
}

table! {
    /// One question to a person.
    intervention in interventions {
        keys { 1 namespace_id text, 2 intervention_id uuid }
        changing { 3 version bigint, 4 body text, 5 due_at bigint }
        derived { 6 state smallint, 7 next_at bigint, 8 severity smallint }
        fixed { }
        noted { 9 run_id uuid, 10 kind smallint }
        rare { }
    }
}

table! {
    /// One line of the outbox.
    notice in notices {
        keys { 1 namespace_id text, 2 notice_id text }
        changing {
            3 state smallint, 4 attempts integer, 5 next_at bigint, 6 last_error text, 7 sent_at bigint
        }
        derived { }
        fixed {
            8 intervention_id uuid, 9 channel smallint, 10 recipient text, 11 message smallint,
            12 fields text, 13 created_at bigint
        }
        noted { }
        rare { }
    }
}

table! {
    /// One label of one run.
    label in run_labels {
        keys { 1 namespace_id text, 2 run_id uuid, 3 name text }
        changing { 4 value text, 5 finished_at bigint }
        derived { }
        fixed { 6 created_at bigint }
        noted { }
        rare { }
    }
}

table! {
    /// One registered worker.
    worker in workers {
        keys { 1 namespace_id text, 2 worker_id uuid }
        changing {
            3 task_queue text, 4 hostname text, 5 pid integer, 6 version text, 7 workflow_types text,
            8 labels text, 9 max_concurrent bigint, 10 status smallint, 11 completed_total bigint,
            12 failed_total bigint, 13 registered_at bigint, 14 heartbeat_at bigint,
            15 deregistered_at bigint, 16 row_version bigint
        }
        derived { 17 handles_failures boolean }
        fixed { }
        noted { }
        rare { }
    }
}

table! {
    /// One schedule.
    schedule in schedules {
        keys { 1 namespace_id text, 2 schedule_id text }
        changing {
            3 version bigint, 4 plan text, 5 state text, 6 updated_at bigint, 7 input bytea,
            8 content_type text
        }
        derived { 9 workflow_type text, 10 paused boolean, 11 next_at bigint }
        fixed { 12 uid uuid, 13 created_at bigint }
        noted { }
        rare { }
    }
}

table! {
    /// One namespace.
    namespace in namespaces {
        keys { 1 namespace_id text }
        changing {
            2 description text, 3 disabled_by text, 4 disabled_note text, 5 disabled_at bigint,
            6 defaults text, 7 retention_ms bigint, 8 handler_queue text, 9 created_at bigint,
            10 updated_at bigint, 11 version bigint
        }
        derived { }
        fixed { }
        noted { }
        rare { }
    }
}

table! {
    /// One gate.
    gate in gates {
        keys { 1 namespace_id text, 2 task_queue text, 3 workflow_type text }
        changing {
            4 paused_by text, 5 paused_note text, 6 paused_at bigint, 7 max_concurrent bigint,
            8 updated_at bigint
        }
        derived { }
        fixed { }
        noted { }
        rare { }
    }
}

table! {
    /// One noun.
    noun in nouns {
        keys { 1 namespace_id text, 2 kind text, 3 noun_id text }
        changing { 4 version bigint, 5 body text, 6 updated_at bigint }
        derived { }
        fixed { 7 created_at bigint }
        noted { }
        rare { }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_declaration_gives_every_list_of_a_table() {
        assert_eq!(label!(columns), "namespace_id, run_id, name, value, finished_at, created_at");
        assert_eq!(label!(inserted), label!(columns));
        assert_eq!(label!(values), "?1, ?2, ?3, ?4, ?5, ?6");
        assert_eq!(label!(set), "value = ?4, finished_at = ?5");
        assert_eq!(label!(set_new), "value = new.value, finished_at = new.finished_at");
        assert_eq!(label!(set_excluded), "value = excluded.value, finished_at = excluded.finished_at");
        assert_eq!(label!(changed), "namespace_id, run_id, name, value, finished_at");
        assert_eq!(
            label!(arrays),
            "$1::text[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::bigint[]"
        );
        assert!(run!(qualified).starts_with("runs.namespace_id, runs.run_id, runs.version, "));
        assert!(schedule!(inserted).ends_with(", workflow_type, paused, next_at, uid, created_at"));
        assert!(!schedule!(columns).contains("next_at"));
    }

    #[test]
    fn the_numbers_run_from_one_without_a_gap() {
        let tables = [
            (run!(values), run!(inserted_width)),
            (label!(values), label!(inserted_width)),
            (worker!(values), worker!(inserted_width)),
            (schedule!(values), schedule!(inserted_width)),
            (namespace!(values), namespace!(inserted_width)),
            (gate!(values), gate!(inserted_width)),
            (noun!(values), noun!(inserted_width)),
            (intervention!(values), intervention!(inserted_width)),
            (notice!(values), notice!(inserted_width)),
        ];
        for (values, width) in tables {
            let expected: Vec<String> = (1..=width).map(|number| format!("?{number}")).collect();
            assert_eq!(values, expected.join(", "));
        }
        assert_eq!((run!(width), run!(changed_width), run!(inserted_width)), (20, 17, 23));
    }
}
