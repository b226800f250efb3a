// Package nats publishes events to NATS JetStream, for teams that prefer to take messages from a queue.
//
// A host connects, passes the connection to [New], and uses the result beside the Notifier for HTTP:
//
//	guard := &webhook.Guard{Brokers: []string{nats.Scheme}}
//	send := webhook.ByScheme{"https": webhook.NewHTTP(&webhook.HTTPOptions{Guard: guard}), nats.Scheme: nats.New(js, nil)}
//
// The guard goes to webhook.NewService, send to webhook.NewDispatcher. If a team then registers an endpoint with the
// URL "nats://healthlab.events", its events are published under "healthlab.events.", the id of the team, and their
// type. The host must create the stream, with the subject "healthlab.events.>".
//
// # Messages
//
// The body and the three headers of its signature are the same as over HTTP, and so are the endpoint's own headers.
// Additional headers are Event-Type, Team-Id, and Idempotency-Key, which is the message id. A body of 1024 bytes or
// more is compressed, with Content-Encoding: gzip. [Read] undoes that, and returns the arguments of
// receiver.Receive.
//
// # Guarantees
//
// The guarantees are those of package webhook: delivery at least once, and in order per key, because the next
// message of a key is published only after the stream has acknowledged the one before. A message counts as delivered
// once it is in the stream; what happens then is between the stream and its consumers. The stream's deduplication is
// not used, because it would drop a message that is replayed on request.
package nats
