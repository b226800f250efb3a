// Package receiver receives the messages of package webhook. It checks the signature of a message before anything else,
// handles it once, lets no old version of an object replace a newer one, decodes the payload into the Go types of the
// service, and answers so that the sender tries again exactly when that helps.
//
//	r, err := receiver.New(secrets, memory.NewSeen(nil), nil)
//	receiver.On(r, func(ctx context.Context, e receiver.Event, s *healthdata.Sleep) error {
//		return db.SaveSleep(ctx, e.User, s) // insert or replace by s.ID
//	})
//	receiver.On(r, func(ctx context.Context, e receiver.Event, b *healthdata.Batch) error {
//		return db.SaveSamples(ctx, e.User, e.Name.Resource, b)
//	})
//	http.Handle("/events", r)
//
// A [Receiver] is an [http.Handler]; [Receiver.Receive] takes a message without an HTTP server, and [Receiver.Apply]
// one whose signature needs no check, for messages from a queue. [On] registers a function for a type of payload.
// [Decode] reads a body and nothing more. [Seen] stores the ids and versions of handled messages.
//
// # At least once
//
// A message is marked as seen after the host's function has returned nil. After a crash in between, the message is
// applied again when the sender repeats it. So a function must insert or replace by the id of the object.
//
// # Which version is newer
//
// If the sender adds a sequence to its bodies (webhook.Envelope), the sequence decides. Otherwise the version of a
// summary is its updated_at, that of an order the id of its last event and then its updated_at, that of an appointment
// the time of its last event, that of a parsing job its status. An older version than the applied one is acknowledged
// and left out; an equal version is applied again, because a sender may repeat the current state to repair a receiver.
// Batches of samples and payloads without an age are always applied.
//
// If a sender loses its database and its sequences begin again at 1, its new events look outdated. Then give its
// receivers a new [Seen].
//
// # What it is not
//
// It is not a queue: the host's function runs while the sender waits, for 10 seconds at most. A function that needs
// longer stores the event and returns.
package receiver
