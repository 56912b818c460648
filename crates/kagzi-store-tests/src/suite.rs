//! The list of claims. A new claim is a function in the file of its guarantee and a line here.

/// Makes one test of every claim that every store must keep.
#[macro_export]
macro_rules! conformance {
    ($factory:expr) => {
        $crate::tests_of_claims! { $factory;
            starts {
                a_start_is_idempotent_by_business_id,
                a_start_is_still_idempotent_after_the_run_ended,
                a_conflicting_start_says_what_differs,
                a_hundred_concurrent_starts_with_one_id_make_one_run,
                two_starts_in_one_call_with_one_id_make_one_run,
                a_start_that_rejects_a_taken_id_is_refused_but_for_its_own_repeat,
                a_new_run_takes_the_id_of_one_that_failed_and_of_none_that_lives_or_completed,
                a_new_run_takes_the_id_of_one_that_ended_and_the_former_is_known_by_its_run_id,
                an_id_that_was_taken_over_can_be_taken_over_again_in_one_batch,
                a_run_that_is_to_start_later_is_given_to_nobody_before,
                runs_without_a_business_id_are_all_different,
                a_start_without_a_business_id_can_be_sent_again_and_makes_one_run,
            }
            claims {
                a_standing_worker_gets_a_new_run_in_the_same_commit,
                the_end_of_one_run_and_the_claim_of_the_next_share_a_commit,
                as_many_runs_are_claimed_as_leases_end_in_the_same_commit,
                waiting_runs_are_given_out_in_the_order_they_came,
                one_slot_serves_a_queue_first_in_first_out,
                a_type_that_nobody_registers_does_not_block_the_others,
                a_worker_gets_only_the_types_and_queue_it_registered,
                a_worker_never_holds_more_than_max_concurrent,
                two_demands_of_one_worker_share_its_slots,
                work_goes_to_whoever_has_room,
                a_closed_receiver_gives_its_runs_back_without_counting_as_an_attempt,
                a_withdrawn_demand_gets_nothing_more_and_keeps_what_it_has,
                a_demand_is_refused_for_an_unknown_worker_or_type,
            }
            isolation {
                a_handler_starts_although_an_ended_run_has_its_id,
                a_handler_starts_although_a_living_run_has_its_id,
                a_deadline_starts_its_handler_although_the_id_is_taken,
                one_command_that_cannot_be_stored_is_refused_and_its_neighbours_are_not,
                calls_that_share_a_batch_with_a_culprit_are_answered,
                a_run_of_another_type_waits_only_for_those_that_were_due_before_it,
                queues_behind_one_limit_are_served_in_the_order_they_came,
                a_failure_with_every_kind_of_text_is_stored_and_read_back,
            }
            interventions {
                a_question_its_wait_and_its_notices_are_there_together_and_sent_twice_it_is_one,
                an_answer_wakes_its_run_in_the_same_commit_and_the_next_one_is_told_by_whom,
                of_fifty_who_answer_at_once_one_counts,
                an_answer_to_a_run_that_a_worker_executes_waits_for_its_question,
                votes_below_the_quorum_do_not_touch_the_run,
                time_escalates_in_order_and_ends_a_question_once,
                an_answer_at_the_instant_of_its_end_or_the_end_counts_and_never_both,
                the_end_of_a_run_closes_its_questions_and_nobody_can_answer,
                a_question_that_the_code_drops_is_closed_and_one_that_it_asks_again_is_new,
                a_run_that_goes_on_after_its_end_asks_anew,
                a_run_that_continues_in_place_drops_what_it_asked,
                a_question_that_somebody_takes_back_fails_its_wait,
            }
            inbox {
                the_eleventh_question_waits_until_one_of_the_ten_is_closed,
                a_claim_keeps_others_away_for_five_minutes_unless_they_force_it,
                people_are_told_on_the_ways_that_they_chose_and_groups_by_their_members,
                a_notice_is_taken_once_until_its_time_and_settled_for_good,
                questions_are_listed_by_urgency_both_ways_and_by_whom_they_ask,
                a_question_goes_with_its_run_when_that_is_past_its_retention,
            }
            shared_keys {
                of_a_hundred_claims_at_once_one_holds_the_key_and_all_read_its_result,
                a_claim_that_ran_out_is_taken_by_one_and_its_late_word_changes_nothing,
                a_forgotten_key_is_claimed_anew_and_an_unknown_one_is_not_found,
            }
            nouns {
                a_noun_is_made_once_rewritten_and_deleted,
                nouns_are_listed_by_their_ids_both_ways_and_by_kind,
                a_disabled_namespace_takes_no_new_noun_and_answers_repeats,
            }
            polls {
                a_poll_takes_one_run_only,
                a_poll_that_waits_gets_the_next_run,
                each_of_several_polls_gets_another_run,
                several_polls_never_exceed_max_concurrent_and_strand_nothing,
            }
            leases {
                every_lease_raises_the_epoch,
                every_write_under_a_stale_lease_is_refused,
                every_late_write_to_an_ended_run_is_refused,
                a_run_that_waits_has_no_lease_to_write_under,
                a_heartbeat_renews_to_now_plus_the_length_and_never_adds_up,
                a_runs_own_heartbeat_timeout_is_the_length_of_its_lease,
                a_renewed_lease_outlives_its_first_length,
                a_lease_that_ran_out_is_taken_back_by_the_sweep_and_not_before,
                a_sweep_that_waited_for_its_turn_takes_no_lease_that_ran_out_meanwhile,
                unlisted_leases_are_given_back_after_the_grace,
                listed_but_lost_leases_are_reported,
                a_repeated_command_is_answered_and_writes_nothing,
                an_order_that_comes_too_late_is_no_stale_write,
                a_report_that_contradicts_the_record_pauses_its_run_in_the_same_commit,
            }
            lost_workers {
                the_runs_of_a_silent_worker_are_taken_over_with_backoff,
                a_heartbeat_keeps_a_worker_alive,
                a_lost_worker_is_refused_until_it_registers_again,
                a_heartbeat_of_an_unknown_worker_is_refused,
                a_run_that_takes_its_workers_down_is_quarantined,
                a_run_whose_steps_may_be_tried_once_goes_on_when_its_worker_is_lost,
                an_execution_of_a_step_that_began_and_died_has_its_number,
                the_runs_of_a_worker_that_was_cut_off_go_on_elsewhere_without_backoff,
                a_worker_that_was_heard_of_after_its_connection_broke_keeps_its_runs,
                a_run_given_back_without_progress_again_and_again_is_quarantined,
                a_quarantined_run_starts_its_handler_once_even_if_it_fails_later,
                progress_forgives_earlier_crashes,
            }
            workers {
                a_registered_worker_reads_back_as_it_came,
                a_draining_worker_gets_nothing_new_and_finishes_what_it_has,
                a_worker_that_leaves_gives_its_runs_back_without_counting_as_an_attempt,
                a_worker_id_is_of_no_use_to_another_namespace_or_queue,
                a_run_that_a_reconnect_gives_back_is_not_leased_into_the_former_stream,
                leaving_twice_is_leaving_once,
                draining_needs_a_worker_that_is_there,
                registering_again_does_not_forget_what_the_worker_holds,
                completed_and_failed_runs_are_counted_truly,
                a_worker_taken_offline_loses_its_runs_at_once_and_is_told,
                workers_long_offline_are_forgotten_and_others_are_not,
                the_queue_of_a_forgotten_failure_handler_is_remembered,
            }
            closes {
                what_ended_while_the_code_dropped_it_is_taken_out_of_the_order,
            }
            replay_law {
                a_parked_run_says_in_its_history_what_it_waits_for,
                a_parked_run_is_due_with_the_steps_it_names_and_the_others_are_closed,
                a_closed_step_is_opened_by_the_next_word_and_keeps_its_attempts,
                a_closed_sleep_that_is_named_again_wakes_the_run,
                a_step_that_was_dropped_while_it_ran_is_not_timed_out,
                a_run_that_parks_without_progress_is_put_off_and_then_paused,
                a_run_that_does_nothing_but_continue_is_put_off_and_then_paused,
                a_park_after_progress_is_not_put_off,
                the_journal_knows_the_order_in_which_the_function_was_told,
                several_results_are_recorded_together_or_not_at_all,
                a_reopened_run_executes_again_only_what_failed_it,
                a_run_retried_by_policy_executes_again_only_what_failed_it,
                a_run_goes_on_from_an_earlier_failure_only_if_nothing_else_came_after_it,
                a_request_to_go_on_is_carried_out_once,
            }
            scopes {
                a_recorded_scope_stands_for_everything_that_lies_in_it,
                the_journal_of_a_thousand_scopes_has_a_thousand_entries,
            }
            children {
                a_child_is_there_with_the_record_of_its_start_and_sent_twice_it_is_one,
                the_end_of_a_child_wakes_its_parent_in_its_own_commit,
                a_child_that_ends_first_is_taken_by_whoever_asks_or_parks,
                the_last_of_many_children_wakes_their_parent,
                the_first_failure_wakes_a_parent_that_wants_to_hear_of_it,
                every_way_in_which_a_child_ends_is_told_with_its_code,
                what_a_run_has_started_ends_with_it_as_it_asked_for,
                many_children_are_closed_in_pieces_and_trees_to_their_leaves,
                a_child_whose_id_another_run_has_is_not_started_and_its_parent_is_told,
                a_run_that_goes_on_again_starts_other_children_for_those_that_were_closed,
                the_end_of_a_child_is_recorded_also_where_its_parent_has_ended,
                a_lineage_has_an_end,
            }
            signals {
                a_signal_that_comes_early_waits_for_its_wait,
                signals_are_taken_in_order_and_once,
                a_parked_run_goes_on_in_the_commit_of_its_signal,
                a_signal_for_a_run_that_is_executed_is_hinted_and_taken_when_the_code_asks,
                a_signal_that_comes_while_the_park_is_on_its_way_is_not_slept_through,
                of_two_waits_that_race_the_loser_takes_nothing,
                the_timeout_and_a_signal_at_the_same_instant_have_one_winner,
                a_wait_that_the_code_dropped_at_its_end_gives_its_signal_back,
                a_wait_whose_signal_came_in_time_is_not_over_when_the_run_is_claimed_late,
                a_closed_channel_refuses_and_loses_nothing,
                a_signal_that_says_failed_ends_its_wait_with_the_error,
                unread_signals_are_bounded_and_the_rest_is_refused,
                what_becomes_of_signals_is_counted,
                an_ended_run_takes_no_signal_and_says_so,
            }
            signals_at_once {
                a_signal_in_the_commit_of_a_park_is_told_and_taken_once,
                a_signal_in_the_commit_of_the_end_is_told_and_kept_or_refused,
                a_signal_in_the_commit_of_a_takeover_is_taken_by_the_heir_alone,
                a_signal_in_the_commit_of_the_question_is_taken_now_or_hinted,
                a_signal_in_the_commit_of_the_timeout_is_taken_or_lies_there,
            }
            meetings {
                of_two_signals_for_one_wait_the_first_is_taken_and_the_second_lies_there,
                a_signal_that_says_something_else_the_second_time_counts_once,
                a_run_that_wants_all_of_its_signals_takes_all_that_lie_there,
                a_run_that_wants_all_and_waits_for_time_too_goes_on_with_the_first,
                what_a_worker_took_before_it_died_is_told_to_its_heir,
                the_end_of_a_child_and_the_cancel_of_its_parent_have_one_order,
                the_heir_of_a_worker_that_never_heard_of_its_child_finds_that_child,
                a_cancelled_parent_of_very_many_closes_them_in_bounded_pieces,
                a_thousand_children_that_end_at_once_wake_their_parent_once,
            }
            events_published {
                an_event_reaches_every_run_that_waits_for_it_and_no_other,
                an_event_counts_once_by_its_id_on_its_topic,
                a_run_that_waits_later_finds_what_was_published_since_it_was_created,
                an_event_is_kept_as_long_as_it_is_said_and_goes_then,
                an_event_that_nobody_delivered_in_time_still_reaches_who_waited,
                an_event_for_a_run_that_is_executed_is_hinted_and_taken_when_the_code_asks,
                an_event_and_the_timeout_at_the_same_instant_have_one_winner,
                a_wait_that_the_code_dropped_hears_of_nothing_until_it_comes_by_again,
                a_run_that_has_ended_is_forgotten_and_one_that_goes_on_again_finds_what_is_kept,
                a_run_that_continues_hears_of_no_event_twice,
                many_runs_hear_of_many_events_in_their_order_and_of_each_once,
                two_waits_of_one_run_take_two_events,
                a_disabled_namespace_publishes_nothing_and_answers_repeats,
                an_event_in_the_commit_of_the_wait_is_heard_once,
                kept_events_are_listed_both_ways_and_by_topic,
                a_unary_wait_is_answered_with_what_is_kept_or_parked,
            }
            triggers {
                a_trigger_starts_one_run_per_event_of_its_topic_and_key,
                triggers_are_bounded_and_one_too_many_is_refused,
                a_failed_run_is_published_in_its_commit_where_a_trigger_wants_it_and_else_not,
                a_run_that_waits_for_failures_hears_of_a_timeout,
            }
            promises {
                a_promise_is_completed_once_early_or_late,
                a_parked_run_goes_on_in_the_commit_that_completes_its_promise,
                who_has_no_right_to_a_promise_learns_and_changes_nothing,
                the_time_of_a_promise_counts_from_when_it_was_made,
                a_promise_lives_as_long_as_its_signs_of_life_and_is_silent_after_them,
                a_promise_that_has_failed_is_told_again_to_a_run_that_is_retried,
                the_last_value_counts_and_a_replay_sets_nothing_again,
            }
            start_signals {
                a_new_run_is_told_in_the_commit_of_its_start,
                a_run_that_is_there_is_told_and_goes_on_in_one_commit_whatever_its_input,
                a_hundred_starts_with_a_signal_make_one_run_that_is_told_a_hundred_times,
                the_same_start_again_tells_nothing_twice,
                where_one_signal_is_refused_none_is_told,
                an_ended_run_refuses_unless_a_new_one_may_take_its_id,
                a_start_that_conflicts_tells_nothing,
            }
            carried {
                what_operators_asked_for_and_who_handled_a_failure_is_known_later,
                failures_of_a_generation_are_not_counted_in_the_next,
            }
            generations {
                a_run_that_continues_is_given_out_again_in_the_same_commit_with_its_new_input,
                a_new_generation_has_an_empty_record_and_old_leases_write_nothing_into_it,
                what_a_run_was_started_with_stays,
                unread_signals_are_taken_generations_later_with_what_they_said,
                a_signal_that_was_given_back_is_taken_by_the_next_generation,
                a_late_repeat_of_a_signal_is_recognised_in_a_later_generation,
                signals_without_pause_and_a_run_that_continues_without_pause_lose_nothing,
                a_history_stays_flat_over_many_generations,
                a_large_generation_goes_piece_by_piece,
                a_run_that_is_cancelled_does_not_continue_and_one_that_continued_is_cancelled,
                a_lost_worker_of_a_later_generation_is_replaced_with_the_right_input,
                children_are_the_runs_own_in_every_generation,
                a_run_that_continued_goes_with_all_that_belongs_to_it,
                a_reader_who_pages_through_a_history_that_goes_meanwhile_sees_each_event_once,
            }
            timers {
                a_failed_step_is_due_exactly_at_its_retry,
                a_sleep_ends_exactly_on_time,
                a_final_failure_leaves_the_run_with_its_worker,
                the_earliest_of_several_waits_wakes_the_run,
                a_thousand_sleepers_due_at_once_are_all_delivered_and_none_early,
                a_person_can_cut_a_retry_short_but_not_a_sleep,
                a_run_due_while_nobody_has_room_is_given_out_later,
                waking_and_parking_count_as_no_attempt,
                a_step_that_began_by_a_call_fails_by_the_policy_it_named_there,
                a_step_that_runs_too_long_is_a_failed_attempt,
            }
            deadlines {
                a_deadline_ends_a_queued_run,
                a_deadline_ends_a_leased_run_and_tells_its_worker,
                a_deadline_ends_a_sleeping_run,
                a_deadline_ends_a_retrying_run,
                a_deadline_ends_a_paused_run,
                a_reopened_run_forgets_the_deadline_that_passed,
            }
            endings {
                every_order_says_in_its_event_who_gave_it_and_why,
                the_last_results_and_the_end_are_recorded_together_or_not_at_all,
                a_queued_run_can_be_cancelled,
                a_leased_run_can_be_cancelled_and_its_worker_is_told,
                a_sleeping_run_can_be_cancelled,
                a_retrying_run_can_be_cancelled,
                a_paused_run_can_be_cancelled,
                a_cancel_that_races_the_end_has_one_winner,
                the_end_is_told_once_with_its_output,
                a_failed_run_keeps_its_error,
                a_failed_run_starts_its_handler_once_and_in_the_same_commit,
                a_run_whose_id_looks_like_a_handlers_has_its_own_handler,
                the_namespaces_handler_is_known_even_when_its_worker_has_left,
                a_reopened_run_goes_on_with_its_recorded_steps,
            }
            history {
                events_are_numbered_without_a_gap_and_in_order,
                a_step_has_one_result_however_often_it_is_sent,
                the_first_result_of_a_step_stays,
                payloads_come_back_byte_for_byte,
                events_are_read_from_any_point_in_pieces,
                history_is_filtered_by_kind_step_and_time_and_read_from_either_end,
                a_piece_of_history_ends_before_its_payloads_are_too_large,
                an_outline_is_the_history_without_its_payloads,
            }
            batches {
                a_refused_command_does_not_disturb_its_neighbours,
                commands_of_one_call_see_each_other_in_order,
                a_run_can_start_and_end_in_one_call,
                an_empty_call_is_answered,
            }
            reads {
                a_run_is_found_by_its_id_and_its_business_id,
                a_run_is_found_by_the_first_digits_of_its_id,
                a_worker_is_found_by_the_first_digits_of_its_id,
                a_census_counts_ready_waiting_and_leased_runs_and_workers,
                parked_runs_are_counted_by_what_they_wait_for,
                a_probe_goes_through_the_write_path_and_changes_nothing,
                reading_works_at_all,
            }
            listings {
                runs_are_listed_newest_first_and_filtered,
                pages_forward_and_back_neither_skip_nor_repeat_while_rows_come_in,
                an_empty_list_has_no_neighbours,
                workers_are_listed_counted_and_filtered,
            }
            listing_filters {
                every_filter_lists_what_its_rule_says_in_every_order_and_both_ways,
                a_label_finds_runs_by_its_last_value_only,
            }
            labels {
                labels_of_the_start_and_of_the_workflow_are_on_the_run,
                a_label_that_is_sent_again_after_a_later_one_does_not_come_back,
                several_labels_of_one_call_are_set_in_order,
            }
            schedules {
                a_schedule_fires_exactly_on_time_and_once,
                a_standing_worker_gets_a_scheduled_run_in_the_same_commit,
                after_thirty_days_the_newest_hundred_run_and_others_are_not_starved,
                the_bounds_of_a_round_are_kept,
                skip_leaves_out_what_comes_while_a_run_goes,
                a_buffered_time_starts_in_the_commit_that_ends_the_run_before,
                buffer_one_keeps_one_and_counts_the_others,
                cancel_and_terminate_take_the_place_of_the_run_before,
                a_pause_holds_and_a_resume_chooses_whether_to_catch_up,
                a_trigger_is_safe_to_send_twice,
                a_backfill_starts_each_time_of_its_range_once,
                a_backfill_can_run_one_after_the_other,
                creating_twice_is_creating_once_and_another_plan_is_refused,
                an_update_holds_from_now_on_and_notices_a_stale_reader,
                a_deleted_schedule_fires_no_more_and_its_runs_go_on,
                schedules_are_listed_newest_first_and_filtered,
                no_schedule_crosses_a_namespace,
                the_observer_is_told_when_a_schedule_is_due,
                a_run_ended_by_its_worker_or_a_person_frees_the_schedule,
                a_run_that_is_retried_or_restarted_counts_for_the_overlap_policy,
                runs_carry_the_labels_of_their_schedule_however_they_are_started,
                what_is_started_how_late_and_what_is_left_out_is_counted,
                a_buffered_time_is_counted_once_and_is_not_late,
            }
            held_schedules {
                a_disabled_namespace_holds_its_schedules_and_makes_up_for_the_times_when_it_is_enabled,
                a_disabled_namespace_keeps_the_run_that_the_next_one_would_have_replaced,
                what_would_make_runs_is_refused_with_the_reason_and_the_rest_is_not,
            }
            retention {
                a_run_goes_with_all_that_belongs_to_it_when_it_ended_long_ago_and_not_before,
                a_business_id_is_free_again_when_its_run_is_gone,
                runs_that_have_not_ended_stay_however_old,
                a_reopened_run_stays,
                a_failed_run_stays_until_its_handler_has_ended,
                a_run_that_was_retried_and_completed_stays_until_its_handler_has_ended,
                a_namespace_keeps_its_runs_for_as_long_as_it_says_and_others_for_as_long_as_the_server_says,
                a_server_that_keeps_everything_still_follows_the_namespaces,
                a_changed_retention_holds_from_its_commit_on,
                what_one_namespace_must_keep_does_not_stop_the_retention_of_the_next,
                many_runs_go_in_small_turns_and_claims_go_on_between_them,
            }
            namespaces {
                one_business_id_names_two_runs_in_two_namespaces,
                reads_from_another_namespace_see_nothing,
                commands_from_another_namespace_find_nothing,
                a_worker_gets_no_run_of_another_namespace,
                the_default_namespace_exists_always,
                a_namespace_is_made_by_its_first_use,
                an_unknown_namespace_is_refused_where_the_server_says_so,
                a_changed_namespace_reads_back_as_it_was_answered,
                namespaces_are_listed_by_name,
                a_disabled_namespace_takes_no_new_runs_and_finishes_those_it_has,
                the_repeat_of_a_start_is_answered_in_a_disabled_namespace,
                a_run_inherits_field_by_field_from_its_namespace_and_the_server,
                the_namespace_says_where_its_failure_handler_starts_when_no_worker_does,
            }
            gates {
                a_paused_queue_gives_out_nothing_and_what_runs_goes_on,
                a_resumed_queue_gives_out_at_once_what_waited,
                a_paused_type_does_not_hold_up_the_others,
                a_queue_limit_holds_at_every_commit,
                a_type_limit_holds_at_every_commit,
                a_namespace_limit_holds_over_all_queues,
                the_tightest_of_several_gates_counts,
                a_start_is_not_claimed_in_its_commit_when_the_gate_is_full,
                a_slot_is_used_again_in_the_commit_that_frees_it,
                however_a_lease_ends_its_slot_is_free_again,
                a_raised_limit_gives_out_at_once_and_a_lowered_one_takes_nothing_back,
                a_gate_holds_for_workers_that_come_later,
                a_sleeper_that_is_due_waits_before_a_full_gate,
                gates_of_one_namespace_hold_up_nothing_in_another,
                gates_read_back_and_an_open_one_is_gone,
                asking_twice_is_asking_once,
                depths_count_what_lives,
            }
        }
    };
}

/// Makes one test of every claim that a store with a disk must keep.
#[macro_export]
macro_rules! durability {
    ($factory:expr) => {
        $crate::tests_of_claims! { $factory;
            kept_promises {
                a_promise_and_a_value_are_still_there_after_a_restart,
            }
            kept_signals {
                a_repeat_is_recognised_before_and_after_it_was_taken_and_after_a_restart,
                a_run_that_waits_is_found_by_its_reason_and_is_still_there_after_a_restart,
            }
            kept_generations {
                a_run_goes_on_in_its_generation_after_a_restart,
                a_repeat_of_a_continue_is_recognised_after_a_restart,
                a_run_knows_the_children_of_earlier_generations_after_a_restart,
            }
            durability {
                an_acknowledged_start_survives_reopening,
                a_worker_goes_on_with_its_lease_after_reopening,
                leases_from_before_reopening_count_against_the_limit,
                a_sleeper_survives_reopening_and_wakes_on_time,
                every_row_and_event_is_the_same_after_reopening,
                a_closed_store_refuses_and_loses_nothing,
                a_schedule_survives_reopening_and_fires_once,
                namespaces_and_gates_survive_reopening,
                a_ready_run_is_claimed_although_the_clock_was_set_back_over_a_restart,
                a_start_time_and_an_id_that_was_taken_over_outlive_a_restart,
            }
            unreadable {
                an_event_of_a_kind_that_only_a_newer_server_knows_stops_nobody,
                a_damaged_event_stops_nobody,
                a_damaged_row_of_a_run_stops_nobody,
                a_state_that_only_a_newer_server_knows_is_kept_and_stops_nobody,
                a_page_with_a_row_that_cannot_be_read_shows_the_others_and_counts_it,
                a_history_with_a_row_missing_is_not_gone_on_with,
                a_second_result_of_a_step_is_noticed_when_the_run_is_loaded,
                rows_of_events_have_the_same_bytes_on_every_database,
                events_above_the_level_of_the_database_are_not_written,
                a_start_under_the_id_of_a_run_that_cannot_be_read_is_refused_and_makes_no_second_one,
                a_deadline_of_a_run_that_cannot_be_read_holds_up_no_other,
                a_schedule_that_cannot_be_read_stops_no_other,
                settings_of_a_namespace_that_cannot_be_read_stop_no_other_namespace,
                a_namespace_that_cannot_be_read_is_listed_by_its_name_among_the_others,
                rows_that_are_due_and_cannot_be_leased_do_not_stand_in_the_way_of_their_queue,
            }
        }
    };
}

/// Makes one test of every claim that is about many runs at once.
#[macro_export]
macro_rules! crowds {
    ($factory:expr) => {
        $crate::tests_of_claims! { $factory;
            many_pages {
                every_old_run_is_listed_once_forward_and_once_back_while_a_thousand_come_in,
            }
            meetings {
                a_cancelled_parent_of_ten_thousand_closes_them_in_bounded_pieces,
            }
            timers {
                ten_thousand_sleepers_due_at_once_all_finish_once_and_none_early,
            }
        }
    };
}

/// One module per guarantee, one test per claim. Made by [`conformance!`] and [`durability!`].
#[doc(hidden)]
#[macro_export]
macro_rules! tests_of_claims {
    ($factory:expr; $($guarantee:ident { $($claim:ident,)* })*) => {
        $(
            mod $guarantee {
                #[allow(unused_imports)]
                use super::*;

                $(
                    #[tokio::test]
                    async fn $claim() {
                        let stage = $crate::Stage::open($factory).await;
                        $crate::$guarantee::$claim(stage).await;
                    }
                )*
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// A claim that is written and not listed would never be tested.
    #[test]
    fn every_claim_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let list = include_str!("suite.rs");

        let mut claims = 0;
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        for file in files.filter(|path| path.is_file()) {
            for line in fs::read_to_string(file).unwrap().lines() {
                let Some(claim) = line.strip_prefix("pub async fn ") else { continue };
                let Some((name, "stage: Stage) {" | "mut stage: Stage) {")) = claim.split_once('(') else {
                    continue;
                };
                assert!(list.contains(&format!("                {name},\n")), "{name} is not in suite.rs");
                claims += 1;
            }
        }

        assert!(claims > 80, "{claims}");
    }
}
