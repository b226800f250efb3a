// Package pull fetches the data of people's connections: their history once, and what is
// new for as long as the connection works.
//
// What is to be fetched are tasks, one for each user, provider, resource and kind
// ([History] or [News]); they are rows of a [Store], claimed under a lease, so any number
// of processes share them and a crash forgets nothing. A task makes one request to the
// provider at a time, stores what came (healthdata.Service keeps what comes twice once),
// notes how far it is, and goes to the end of the queue: so the first page of every user comes
// before the second page of any.
//
//	pulls, err := pull.New(store, users, refresher, connectors, nil)
//	go pulls.Run(ctx)
//	result, err := pulls.Refresh(ctx, team, user, 10*time.Second)
//
// # Limits
//
// A provider's limits ([Limit]) are kept by reserving a slot for every request in a
// [Budget] that all processes share. Slots are spread over the window, and a request
// waits for its own, so we never ask more often than we may; what a provider says in its
// answers (remaining requests, Retry-After) is obeyed on top.
//
// A provider's limits may stand in its record (healthdata.RateLimits), so that they are
// configuration.
//
// # What providers send
//
// A provider that calls us when there is something new is listened to: [Service.Listen]
// takes its message, once, and makes the news be fetched next, as far back as the provider
// says. Nothing of a message is believed but that.
//
// A puller is asked for timeseries and summaries; one that has more, lists of devices and
// recordings of workouts, says so (linking.ExtendedPuller). What a page says of the device that
// recorded it is kept as a device of the user, and data of a connection with one device is of
// that.
//
// Histories of resources that one answer brings (linking.ProviderConnector.Together) are fetched
// together: the first of them leads, and each page moves all ([Task.Lead]).
//
// # Looking at it
//
// [Service.Progress] says how far a first import is, [Service.Histories] and
// [Service.Resources] how fetching goes for a team's people, with what was refused.
// Each history has a name there, by which its requests are found in logs and traces
// ([Task.Trace]).
//
// # What can be relied on
//
// History is walked from the newest day to the oldest. Its event is written when all of
// it is stored and readable, once. News begins where history began, looks back a few days
// every time, because providers deliver late, and once a day further than that. What a
// provider sends and healthdata refuses is quarantined with the reason, and the rest is
// kept.
package pull
