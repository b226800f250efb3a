// Package nats hands events to NATS JetStream, for teams that would rather take messages
// out of a queue than be called.
//
// A host connects, gives the connection to [New], and mounts the result beside the
// Notifier for HTTP:
//
//	guard := &webhook.Guard{Brokers: []string{nats.Scheme}}
//	send := webhook.ByScheme{"https": webhook.NewHTTP(&webhook.HTTPOptions{Guard: guard}), nats.Scheme: nats.New(js, nil)}
//
// The guard goes to webhook.NewService, send to webhook.NewDispatcher. From then on a
// team registers an endpoint with the URL "nats://healthlab.events", and its events are
// published under "healthlab.events.", the id of the team, and their type. The stream is
// the host's to make, with the subject "healthlab.events.>".
//
// # What a message is
//
// The body is the one that HTTP would carry, and so are the three headers of its
// signature and the endpoint's own. Beside them stand Event-Type, Team-Id, and
// Idempotency-Key, which is the message id. A body of 1024 bytes or more is compressed,
// and says so in Content-Encoding: gzip. [Read] undoes that, and gives what
// receiver.Receive takes.
//
// # What is promised
//
// What webhook promises: at least once, and in order per key, because the next message of
// a key is published only after the stream has acknowledged the one before. A message
// counts as delivered once it is in the stream; when it is taken out is between the
// stream and its consumers. The stream's own deduplication is not asked for: it would
// swallow a message whose replay was requested.
package nats
