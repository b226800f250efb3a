// Package webhook tells other systems what has happened: it turns events into signed
// HTTP requests, and sees to it that each of them arrives.
//
// What it promises, in this order:
//
//   - Nothing is lost. An event is written in the same commit as the change that it
//     describes; from then on it is delivered, or ends as failed or cancelled with a
//     reason that people can read.
//   - At least once. After a crash a message may arrive twice, with the same
//     webhook-id and the same bytes.
//   - In order per key, as far as a sender can. While a delivery of a key is
//     unfinished, the next one of that key to that endpoint is not started.
//   - An endpoint that is slow, dead or flooded delays itself only.
//   - Every wait, buffer and retry has a bound with a name.
//
// # The names to know
//
// [Render] makes the body of a message once; those bytes are stored and sent, and
// never made again. [Sign] and [Verify] are the two ends of the signature. A
// [Service] manages endpoints: their URLs, secrets, headers, and what to send again.
// A [Dispatcher] delivers: it takes events from the outbox into lanes, claims what is
// due, sends it through a [Notifier], and records what came of it. Storage is behind
// the small interfaces [Deliveries], [Endpoints] and [Log].
//
// # Waking
//
// A dispatcher looks for work by itself, every second when it has none (Options.Idle).
// [Dispatcher.Wake] makes it look at once: call it after a commit in the same process.
// With [Options].Signal the dispatchers of other processes hear, too, what one has routed,
// twenty times a second at most. Whatever is lost of that costs time, and nothing else.
//
// # Lanes
//
// A lane is one key of one endpoint. In each lane one delivery is the head; the
// others wait. Only heads are sent. When the head ends, the next one takes its
// place. What a newer event does to an older, unsent one of the same key is the
// event type's [healthlab.Mode], and [Place] is the whole rule.
//
// # What it is not
//
// It does not know what the events mean: the host hands in the lists of event types
// ([NewCatalogue]). It promises no order to receivers, who keep the latest version
// that they received; it only does its best not to hurt them.
package webhook
