// Package console serves HTML pages over the public HTTP API: users, charts of their data,
// orders, results under review, webhook attempts and queries.
//
// [New] takes the API as an [net/http.Handler] and the keys of one team. A person signs in
// with a management key; the API checks it. Pages are rendered on the server, need no
// JavaScript, and hold no data between requests other than sessions in memory. A console in
// several processes needs sticky sessions.
package console

// Files in the order of reading: each uses those before it.
//
//	session.go chart.go client.go console.go series.go glucose.go person.go sources.go contract.go diagram.go
//	events.go history.go labs.go orders.go query.go sandbox.go reports.go home.go critical.go settings.go
//	endpoints.go admin.go sleep.go workouts.go
