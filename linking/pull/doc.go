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
//	pulls, err := pull.New(store.Pulls(), health, refresher, connectors, nil)
//	go pulls.Run(ctx)
//	result, err := pulls.Refresh(ctx, team, user, 10*time.Second)
//
// # Limits
//
// A provider's limits ([Limit]) are kept by reserving a slot for every request in a
// [Budget] that all processes share. Slots are spread over the window, and a request
// waits for its own, so we never ask more often than we may; what a provider says in its
// answers (remaining requests, Retry-After) is obeyed on top. A provider's record may have
// limits (healthdata.RateLimits).
//
// # What providers send
//
// [Service.Listen] takes the message of a provider, once, and makes the news be fetched next. Nothing of a
// message is believed but that, and how far back the provider says. A puller that has more than timeseries and
// summaries is a linking.ExtendedPuller. Histories that one answer brings (linking.ProviderConnector.Together)
// are fetched together ([Task.Lead]).
//
// # Looking at it
//
// [Service.Progress] says how far a first import is, [Service.Histories] and [Service.Resources] how fetching
// goes for a team's people, with what was refused. [Task.Trace] is in logs and traces.
//
// # What can be relied on
//
// History is walked from the newest day to the oldest; its event is written once, when all of it can be read.
// News begins where history began, looks back a few days every time, because providers deliver late, and once
// a day further. What healthdata refuses is quarantined with the reason, and the rest is kept.
package pull

// Files in the order of reading: each uses those before it.
//
//	times.go blocked_apps.go budget.go options.go task.go worker_limiter.go store.go fingerprint.go rows.go
//	rows_budget.go service.go rows_refused.go rows_task.go rows_connection.go progress.go followers.go
//	store_page.go rows_status.go rows_notice.go record_outcome.go notifications.go finish_history.go
//	count_upload.go slots.go rows_claim.go refresh.go plan.go refetch.go status.go run.go
