-- +goose Up
-- What orders can be, what happens to them by themselves, and how lists find them.

alter table healthlab.orders
	add column later_due timestamptz,
	add constraint orders_method check (method in ('testkit', 'walk_in_test', 'at_home_phlebotomy', 'on_site_collection')),
	add constraint orders_status check (last_status in (
		'', 'received.testkit.ordered', 'received.testkit.requisition_created', 'received.testkit.requisition_bypassed',
		'received.testkit.awaiting_registration', 'received.testkit.registered',
		'collecting_sample.testkit.transit_customer', 'collecting_sample.testkit.out_for_delivery',
		'collecting_sample.testkit.with_customer', 'collecting_sample.testkit.transit_lab',
		'collecting_sample.testkit.problem_in_transit_customer', 'collecting_sample.testkit.problem_in_transit_lab',
		'sample_with_lab.testkit.delivered_to_lab', 'sample_with_lab.testkit.lab_processing_blocked',
		'completed.testkit.completed', 'completed.testkit.corrected', 'failed.testkit.sample_error',
		'failed.testkit.failure_to_deliver_to_customer', 'failed.testkit.failure_to_deliver_to_lab', 'failed.testkit.lost',
		'cancelled.testkit.cancelled', 'cancelled.testkit.do_not_process', 'received.walk_in_test.ordered',
		'received.walk_in_test.requisition_created', 'received.walk_in_test.requisition_bypassed',
		'collecting_sample.walk_in_test.appointment_pending', 'collecting_sample.walk_in_test.appointment_scheduled',
		'collecting_sample.walk_in_test.appointment_cancelled', 'sample_with_lab.walk_in_test.partial_results',
		'collecting_sample.walk_in_test.redraw_available', 'completed.walk_in_test.completed',
		'completed.walk_in_test.corrected', 'failed.walk_in_test.sample_error', 'cancelled.walk_in_test.cancelled',
		'received.at_home_phlebotomy.ordered', 'received.at_home_phlebotomy.requisition_created',
		'received.at_home_phlebotomy.requisition_bypassed', 'collecting_sample.at_home_phlebotomy.appointment_pending',
		'collecting_sample.at_home_phlebotomy.appointment_scheduled',
		'collecting_sample.at_home_phlebotomy.appointment_cancelled',
		'collecting_sample.at_home_phlebotomy.draw_completed', 'sample_with_lab.at_home_phlebotomy.partial_results',
		'completed.at_home_phlebotomy.completed', 'completed.at_home_phlebotomy.corrected',
		'failed.at_home_phlebotomy.sample_error', 'cancelled.at_home_phlebotomy.cancelled',
		'received.on_site_collection.ordered', 'received.on_site_collection.requisition_created',
		'received.on_site_collection.requisition_bypassed', 'sample_with_lab.on_site_collection.draw_completed',
		'sample_with_lab.on_site_collection.partial_results', 'completed.on_site_collection.completed',
		'completed.on_site_collection.corrected', 'failed.on_site_collection.sample_error',
		'cancelled.on_site_collection.cancelled')),
	add constraint orders_low_level check (status = split_part(last_status, '.', 3)),
	add constraint orders_interpretation check (interpretation in ('normal', 'abnormal', 'critical', 'unknown'));
comment on constraint orders_method on healthlab.orders is 'The collection methods.';
comment on constraint orders_status on healthlab.orders is 'The statuses of the lifecycles, by method; empty before the first event. A test compares them with the table in the code.';
comment on constraint orders_low_level on healthlab.orders is 'The low-level status is the last part of the full one.';
comment on constraint orders_interpretation on healthlab.orders is 'The interpretations of results.';
comment on column healthlab.orders.later_due is
	'When something is to happen by itself: a message to the patient, the next step of a simulation. Moved to the end of the lease by whoever claims the order. Not in the document.';
create index orders_later on healthlab.orders (later_due, order_id) where later_due is not null;
