// Package webhook delivers events to other systems as signed HTTP requests, with retries.
//
//	endpoints, err := webhook.NewService(types, store.Webhooks(), notifier, sealer, nil)
//	_, err = endpoints.Create(ctx, team, webhook.NewEndpoint{URL: "https://receiver.example.com/in"})
//	dispatcher, err := webhook.NewDispatcher(types, store.Webhooks(), notifier, sealer, nil)
//	err = dispatcher.Run(ctx)
//
// What a host calls and gets:
//
//   - [Service] manages endpoints: their URLs, secrets and headers, and resends messages.
//   - [Dispatcher] delivers: it takes events from the outbox, sends due deliveries through a [Notifier], and
//     records the outcomes. [NewHTTP] is the notifier for the web.
//   - [Sign] signs and [Verify] verifies a message; package receiver is a ready-made receiver.
//   - [NewCatalogue] takes the lists of event types: this package does not read payloads.
//
// Guarantees, the most important first:
//
//   - Nothing is lost. An event is written in the same commit as the change that it describes; it is
//     delivered, or ends as failed or cancelled with a reason that people can read.
//   - At least once. After a crash a message may arrive twice, with the same webhook-id and the same bytes, because
//     [Envelope.Render] makes the body once and the store keeps it.
//   - In order per key, as far as a sender can. While a delivery of a key is unfinished, the next one of that key to
//     that endpoint is not started. What a newer event does to an unsent one is its [healthlab.Mode]; [Place] states
//     the rule. Receivers keep the latest version that they received.
//   - An endpoint that is slow, dead or flooded delays itself only.
//   - Every wait, buffer and retry has a bound with a name.
//
// A dispatcher looks for work every second when it has none (Options.Idle). [Dispatcher.Wake] makes it look
// at once; with [Options].Signal it notifies the dispatchers of other processes, too.
package webhook

// Files in the order of reading: each uses those before it.
//
//	sign.go team.go schedule.go health.go headers.go endpoint.go allowance.go answer.go catalogue.go
//	delivery.go bodies.go options.go endpoint_limiter.go envelope.go events.go guard.go interfaces.go
//	verdict.go targets.go pending.go lane.go dispatcher.go record_outcomes.go rows.go rows_lanes.go
//	rows_backlog.go rows_endpoints.go rows_claim.go rows_log.go rows_outbox.go rows_record.go rows_replay.go
//	rows_route.go rows_retention.go service.go service_secrets.go service_endpoints.go http.go signal.go
//	service_sends.go send.go verify.go
