// Package receiver is the other end of package webhook: the kit for those who receive
// our events. It does what every receiver must do:
//
//   - believe nothing before the signature is checked;
//   - handle a message once, although it may arrive twice;
//   - never let an old version of a thing replace a newer one;
//   - decode the payload into the Go types that the service itself uses;
//   - answer so that the sender tries again exactly when that helps.
//
// A receiver is made with the secrets of its endpoint, a memory of what it has seen,
// and one function per type of payload:
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
// # The names to know
//
// A [Receiver] is an [http.Handler]; [Receiver.Receive] is the same without a server,
// and [Receiver.Apply] the part after the signature, for messages that come through a
// queue. [On] says what to do with a type of payload. [Decode] reads a body and
// nothing more. [Seen] is where a receiver keeps what it knows of the past.
//
// # At least once
//
// A message is marked as seen after the host's function has returned nil, and not
// before. So a crash between the two means that the same message is applied again when
// the sender repeats it: a function has to bear that, which it does if it inserts or
// replaces by the id of the thing. The other order would lose messages, and nothing
// brings those back.
//
// # Which version is newer
//
// Where the sender puts a sequence into its bodies, that decides. Otherwise a summary
// goes by its updated_at, an order by the id of its last event and then by its
// updated_at, an appointment by the time of its last event, a parsing job by its status,
// which never goes back. What is older than what was
// applied already is acknowledged and left out. An equal version is applied again: a
// sender repeats the present state on purpose, to repair. Batches of samples have no
// version and are always applied, because each holds samples that no other may hold;
// and so are payloads that say nothing of their age.
//
// A sender whose sequences begin anew, because its database was lost or an old copy of
// it was put back, looks like one that only repeats the past. Its receivers have to
// forget what they have seen: give them a new [Seen].
//
// # What it is not
//
// It is not a queue: the host's function runs while the sender waits, for 10 seconds
// at most. A function with more to do stores the event and returns.
package receiver
