// Package receiver receives the messages of package webhook. It checks the signature of a message before anything
// else, handles it once, lets no old version of a thing replace a newer one, decodes the payload into the Go
// types of the service, and answers so that the sender tries again exactly when that helps.
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
// A [Receiver] is an [http.Handler]; [Receiver.Receive] is the same without a server, and [Receiver.Apply] the
// part after the signature, for messages that come through a queue. [On] registers a function for a type of
// payload. [Decode] reads a body and nothing more. [Seen] stores the ids and versions of handled messages.
//
// # At least once
//
// A message is marked as seen after the host's function has returned nil. After a crash between the two the
// same message is applied again when the sender repeats it: a function inserts or replaces by the id of the
// thing.
//
// # Which version is newer
//
// The sequence decides where the sender puts one into its bodies (webhook.Envelope). Otherwise a summary goes by
// its updated_at, an order by the id of its last event and then by its updated_at, an appointment by the time of
// its last event, a parsing job by its status. An older version than the applied one is acknowledged and left
// out; an equal version is applied again, because a sender repeats the present state to repair. Batches of
// samples and payloads without an age are always applied.
//
// A sender whose sequences begin anew, because its database was lost, looks like one that repeats the past: give
// its receivers a new [Seen].
//
// # What it is not
//
// It is not a queue: the host's function runs while the sender waits, for 10 seconds
// at most. A function with more to do stores the event and returns.
package receiver
